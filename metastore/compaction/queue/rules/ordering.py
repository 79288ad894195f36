"""A parser of the ORDER BY of a rebalance, a client's text, into columns.

Rule: only names of columns and directions are accepted: the text never becomes part of a query. Without a word NULLs
stand last, in descending order first, as in Hive 4 (``hive.default.nulls.last``). Source: COMP-16.
"""

import re
from typing import NamedTuple

from metastore.errors import InvalidRequestError

_WORDS = re.compile(r"\s*order\s+by\b", re.IGNORECASE)
_TERM = re.compile(
    r"\s*(?:`(?P<quoted>(?:[^`]|``)+)`|(?P<plain>\w+))(?:\s+(?P<way>asc|desc))?(?:\s+nulls\s+(?P<nulls>first|last))?"
    r"\s*(?P<end>,|$)",
    re.IGNORECASE,
)


class SortColumn(NamedTuple):
    """A column to order by; its name is in lower case."""

    name: str
    descending: bool = False
    nulls_first: bool = False


def sort_columns(text: str | None) -> tuple[SortColumn, ...]:
    """Parse ``ORDER BY a, `b` DESC NULLS LAST``, with or without the first two words; no text gives no columns.

    Raises: InvalidRequestError.
    """
    rest = _WORDS.sub("", text or "", count=1).strip()
    columns: list[SortColumn] = []
    at, end = 0, "," if rest else ""
    while end:
        term = _TERM.match(rest, at)
        if term is None:
            raise InvalidRequestError(
                f"ORDER BY {rest} cannot be understood: a rebalance is ordered by names of columns, "
                "each with ASC or DESC and NULLS FIRST or NULLS LAST behind it if need be"
            )
        descending = (term["way"] or "").lower() == "desc"
        nulls_first = term["nulls"].lower() == "first" if term["nulls"] else descending
        name = term["quoted"].replace("``", "`") if term["quoted"] else term["plain"]
        columns.append(SortColumn(name.lower(), descending, nulls_first))
        at, end = term.end(), term["end"]
    return tuple(columns)
