"""Hive's statements about compactions → a statement value. Pure. They are read by their words, as Hive 4 has them."""

import re

from metastore.errors import InvalidOperationError
from metastore.spark.sql.alterations import partition_literals, property_pairs
from metastore.spark.sql.statements import AbortCompactions, Compact, ShowCompactions, Statement, dotted

_NAME = r"[\w.`]+"
_TEXT = r"(?:'[^']*'|\"[^\"]*\")"
_PARTITION = r"partition\s*\((?P<partition>.*?)\)"
_FLAGS = re.IGNORECASE | re.DOTALL
_END = r"\s*;?\s*$"

_COMPACT_BEGINS = re.compile(rf"\s*alter\s+table\s+{_NAME}\s+(?:{_PARTITION}\s*)?compact\b", _FLAGS)
_COMPACT = re.compile(
    rf"\s*alter\s+table\s+(?P<table>{_NAME})\s+(?:{_PARTITION}\s*)?compact\s+(?P<kind>{_TEXT})(?P<wait>\s+and\s+wait)?"
    r"(?:\s+clustered\s+into\s+(?P<buckets>\d+)\s+buckets)?"
    r"(?:\s+(?P<order>order\s+by\s+.+?))??"
    rf"(?:\s+pool\s+(?P<pool>{_TEXT}))?"
    rf"(?:\s+with\s+overwrite\s+tblproperties\s*\((?P<pairs>.*)\))?{_END}",
    _FLAGS,
)
_COMPACT_WORDS = (
    "ALTER TABLE t [PARTITION (...)] COMPACT 'type' [AND WAIT] [CLUSTERED INTO n BUCKETS] [ORDER BY ...] [POOL 'p'] "
    "[WITH OVERWRITE TBLPROPERTIES (...)]"
)
_SHOW_BEGINS = re.compile(r"\s*show\s+compactions\b", re.IGNORECASE)
_SHOW = re.compile(
    r"\s*show\s+compactions"
    r"(?:\s+compactionid\s*=\s*(?P<id>\d+)"
    rf"|\s+(?:database|schema)\s+(?P<db>[\w`]+)"
    rf"|(?!\s+(?:pool|type|status|state|order|limit|compactionid|database|schema)\b)"
    rf"\s+(?P<table>{_NAME})(?:\s+{_PARTITION})?)?"
    rf"(?:\s+pool\s+(?P<pool>{_TEXT}))?(?:\s+type\s+(?P<kind>{_TEXT}))?(?:\s+(?:status|state)\s+(?P<state>{_TEXT}))?"
    rf"(?:\s+order\s+by\s+(?P<order>.+?))??(?:\s+limit\s+(?P<limit>\d+))?{_END}",
    _FLAGS,
)
_SHOW_WORDS = (
    "SHOW COMPACTIONS [COMPACTIONID = n | DATABASE d | t [PARTITION (...)]] [POOL 'p'] [TYPE 't'] [STATUS 's'] "
    "[ORDER BY ...] [LIMIT n]"
)
_ABORT_BEGINS = re.compile(r"\s*abort\s+compactions\b", re.IGNORECASE)
_ABORT = re.compile(rf"\s*abort\s+compactions(?P<ids>(?:[\s,]+\d+)+){_END}", re.IGNORECASE)
_ABORT_WORDS = "ABORT COMPACTIONS n ..."


def of_compactions(text: str) -> Statement | None:
    """A statement about compactions; None for others. Raises: InvalidOperationError for what is not understood."""
    if _COMPACT_BEGINS.match(text):
        return _compact(_understood(_COMPACT, text, _COMPACT_WORDS))
    if _SHOW_BEGINS.match(text):
        return _show(_understood(_SHOW, text, _SHOW_WORDS))
    if _ABORT_BEGINS.match(text):
        match = _understood(_ABORT, text, _ABORT_WORDS)
        return AbortCompactions(tuple(int(number) for number in re.findall(r"\d+", match["ids"])))
    return None


def _compact(match: re.Match[str]) -> Compact:
    return Compact(
        dotted(match["table"]),
        partition_literals(match["partition"] or ""),
        _unquoted(match["kind"]).lower(),
        wait=bool(match["wait"]),
        buckets=int(match["buckets"]) if match["buckets"] else None,
        order=match["order"],
        pool=_unquoted(match["pool"]) or None,
        properties=property_pairs(match["pairs"] or ""),
    )


def _show(match: re.Match[str]) -> ShowCompactions:
    return ShowCompactions(
        id=int(match["id"]) if match["id"] else None,
        database=(match["db"] or "").strip("`").lower() or None,
        table=dotted(match["table"]) if match["table"] else None,
        partition=partition_literals(match["partition"] or ""),
        pool=_unquoted(match["pool"]) or None,
        kind=_unquoted(match["kind"]).lower() or None,
        state=_unquoted(match["state"]) or None,
        order=match["order"],
        limit=int(match["limit"]) if match["limit"] else None,
    )


def _understood(form: re.Pattern[str], text: str, words: str) -> re.Match[str]:
    match = form.match(text)
    if match is None:
        raise InvalidOperationError(f"This statement cannot be understood: write {words}, in this order.")
    return match


def _unquoted(text: str | None) -> str:
    return text[1:-1] if text else ""
