"""Which Sparks cannot work here; ``make spark-versions`` runs the tests of ACID tables on those that may."""

from metastore.errors import InvalidOperationError

OLDEST = (4, 1)
"""In Spark 4.0 rows cannot be distributed by a number (``repartitionById``), as a write to buckets does.

Before it Spark has one kind of session only, and what our Java classes extend and call is not there.
"""


def require_supported(version: str) -> None:
    """Raise InvalidOperationError for a Spark that is too old."""
    number = tuple(int(part) for part in version.split(".")[:2])
    if number < OLDEST:
        raise InvalidOperationError(
            f"ACID tables do not work in Spark {version}: they need Spark {'.'.join(map(str, OLDEST))} or newer. "
            "Install a newer one: pip install 'transaction-metastore[spark]'."
        )
