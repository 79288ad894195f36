"""Text of PostgreSQL's arrays for lists that are sent as parameters.

psycopg2 would write ``ARRAY['a', 'b']``: an expression in which each element is quoted, sent and parsed by itself. For
the eighteen lists of a lock request that took as long as the request itself (ADR 12).
"""

from collections.abc import Iterable, Sequence


def bigints(ids: Iterable[int]) -> str:
    """Return the text of a ``bigint[]``."""
    return "{" + ",".join(map(str, ids)) + "}"


def literal(items: Sequence[str | int | None]) -> str:
    """Return the text of an array of texts or of numbers; None is NULL."""
    if not items:
        return "{}"
    try:
        joined = '","'.join(items)  # type: ignore[arg-type]  # the frequent case: texts, and nothing to escape
    except TypeError:
        joined = "\\"
    if "\\" in joined or joined.count('"') > 2 * (len(items) - 1):
        return "{" + ",".join(map(_item, items)) + "}"
    return '{"' + joined + '"}'


def columns(rows: Iterable[Sequence[str | int | None]], width: int) -> list[str]:
    """Return an array for each of the ``width`` columns of the rows."""
    return [literal(column) for column in zip(*rows, strict=True)] or ["{}"] * width


def _item(item: str | int | None) -> str:
    if isinstance(item, str):
        return '"' + item.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return "NULL" if item is None else str(item)
