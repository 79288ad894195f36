"""Conversion of partition values to Spark's own spelling: ``2024-1-5``, ``2024-01-05 10:00:00.0``.

Rule: Spark reads a date with or without leading zeros, and a timestamp with or without its time and zeros at the end of
its fraction; an unreadable text is NULL to Spark. An unknown spelling stays as it is. A timestamp is written in the
time zone in which it is read, so the zone does not matter unless it is spelled. Pure.
"""

import re
from collections.abc import Sequence
from datetime import date, datetime

from metastore.acid.types import HiveType

_DATE = re.compile(r"\s*(\d{4})-(\d{1,2})(?:-(\d{1,2}))?(?:[T ].*)?\s*")
_TIMESTAMP = re.compile(r"\s*(\d{4})-(\d{1,2})-(\d{1,2})(?:[T ](\d{1,2}):(\d{1,2})(?::(\d{1,2})(?:\.(\d{0,9}))?)?)?\s*")
_MICROSECOND_DIGITS = 6


def as_spark_writes(values: Sequence[str | None], types: Sequence[HiveType]) -> tuple[str | None, ...]:
    """Convert the values to Spark's own spelling; a value in an unknown spelling stays as it is."""
    return tuple(
        value if value is None else _written(value, kind.kind) for value, kind in zip(values, types, strict=True)
    )


def _written(text: str, kind: str) -> str:
    match kind:
        case "date":
            return _day(text) or text
        case "timestamp":
            return _moment(text) or text
        case _:
            return text


def _day(text: str) -> str | None:
    if (read := _DATE.fullmatch(text)) is None:
        return None
    try:
        return date(int(read[1]), int(read[2]), int(read[3] or 1)).isoformat()
    except ValueError:
        return None


def _moment(text: str) -> str | None:
    if (read := _TIMESTAMP.fullmatch(text)) is None:
        return None
    year, month, day, hour, minute, second = (int(part or 0) for part in read.groups()[:6])
    try:
        whole = datetime(year, month, day, hour, minute, second).isoformat(" ")  # noqa: DTZ001 - a wall clock's
    except ValueError:
        return None
    fraction = (read[7] or "")[:_MICROSECOND_DIGITS].rstrip("0")
    return f"{whole}.{fraction}" if fraction else whole
