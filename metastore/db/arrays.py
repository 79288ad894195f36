"""Lists on their way to PostgreSQL, as the text of an array.

psycopg2 would write ``ARRAY['a', 'b']``: an expression, each element of which is quoted, sent and read for itself. For
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
    """Return rows as an array for each of their ``width`` columns."""
    return [literal(column) for column in zip(*rows, strict=True)] or ["{}"] * width


def _item(item: str | int | None) -> str:
    if isinstance(item, str):
        return '"' + item.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return "NULL" if item is None else str(item)
