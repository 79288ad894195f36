"""Long lists of ids on their way to PostgreSQL."""

from collections.abc import Iterable


def bigints(ids: Iterable[int]) -> str:
    """The text of a ``bigint[]``.

    One literal: an ``ARRAY[...]`` of ten thousand elements takes longer to read than the query around it to run.
    """
    return "{" + ",".join(map(str, ids)) + "}"
