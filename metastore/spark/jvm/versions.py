"""The supported versions of Spark; ``make spark-versions`` runs the tests of ACID tables on them."""

from metastore.errors import InvalidOperationError

OLDEST = (4, 1)
"""The first supported version. Spark 4.0 cannot distribute rows by a number (``repartitionById``), which buckets need.

Earlier versions lack classes that our Java code extends and calls.
"""


def require_supported(version: str) -> None:
    """Raise InvalidOperationError for a Spark that is too old."""
    number = tuple(int(part) for part in version.split(".")[:2])
    if number < OLDEST:
        raise InvalidOperationError(
            f"ACID tables do not work in Spark {version}: they need Spark {'.'.join(map(str, OLDEST))} or newer. "
            "Install a newer one: pip install 'transaction-metastore[spark]'."
        )
