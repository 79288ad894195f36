"""SQL text → a statement of Hive's that Spark has no words for, or the same in Spark's words. Pure.

Rule: whatever Spark's own grammar has goes to Spark as it stands. Comments in front of a statement do not change what
it is.
"""

import re

from metastore.spark.sql.alterations import altered_table
from metastore.spark.sql.compaction_syntax import of_compactions
from metastore.spark.sql.statements import AbortTransactions, Show, Statement

_LEADING = re.compile(r"\A(?:\s+|--[^\n]*(?:\n|$)|/\*.*?\*/)*", re.DOTALL)
_SHOW = re.compile(r"show\s+(transactions|locks)\s*;?\s*$", re.IGNORECASE)
_ABORT = re.compile(r"abort\s+transactions((?:[\s,]+\d+)+)\s*;?\s*$", re.IGNORECASE)


def without_comments(text: str) -> str:
    """The statement without the comments in front of it."""
    return _LEADING.sub("", text, count=1)


def hives_own(text: str) -> Statement | None:
    """What Spark has no words for; None for others. Raises: InvalidOperationError for what is not understood."""
    if match := _SHOW.match(text):
        return Show(match[1].lower())
    if match := _ABORT.match(text):
        return AbortTransactions(tuple(int(number) for number in re.findall(r"\d+", match[1])))
    return of_compactions(text) or altered_table(text)
