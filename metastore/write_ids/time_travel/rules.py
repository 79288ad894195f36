"""Decisions about the write ids committed at an instant, from the commit times of write ids.

Rule: an answer is right, or refused. An instant is accepted if everything that was committed at or before it can be
distinguished from the rest: not before the times of commits are on record, and not while a commit may be in progress
that is dated before it. Commits are dated to the millisecond, as instants are on the wire.
"""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from metastore.acid.snapshots import ValidWriteIdList
from metastore.errors import InvalidOperationError, UnavailableError
from metastore.ids import TableName

_STEP = timedelta(milliseconds=1)


class Horizon(NamedTuple):
    """The latest instant that can be asked for: ``settled`` is dated before every commit that may be in progress."""

    now: datetime
    settled: datetime


class PastWriteIds(NamedTuple):
    """A table's write ids as of an instant. ``known_since`` is None for a table that never had any.

    ``unfinished``: (write id, whether it is aborted) of the owned ids that were not committed by then. ``later``: ids
    that were committed afterwards and have lost their owner.
    """

    known_since: datetime | None
    next_write_id: int
    unfinished: Sequence[tuple[int, bool]]
    later: Sequence[int]


def require_settled(at: datetime, horizon: Horizon) -> None:
    """Raise InvalidOperationError for a future instant, UnavailableError for an instant just passing."""
    if at > horizon.now:
        raise InvalidOperationError(
            f"{_text(at)} is still to come: by the metastore's clock it is {_text(horizon.now)}"
        )
    if at > horizon.settled - _STEP:
        raise UnavailableError(f"Commits dated before {_text(at)} may still be under way: ask again in a moment")


def write_ids_at(name: TableName, past: PastWriteIds, at: datetime) -> ValidWriteIdList:
    """Return the list of a reader at that instant; ids committed later count as open.

    Raises: InvalidOperationError when the times are no longer on record, or never were.
    """
    if past.known_since is not None and at < past.known_since.replace(
        microsecond=past.known_since.microsecond // 1000 * 1000
    ):
        raise InvalidOperationError(
            f"What {name.db}.{name.table} held at {_text(at)} is not on record: the times of its commits are known "
            f"since {_text(past.known_since)}"
        )
    aborted = {write_id for write_id, is_aborted in past.unfinished if is_aborted}
    hidden = {*past.later, *(write_id for write_id, _ in past.unfinished)}
    mark = past.next_write_id - 1
    while mark in hidden:
        mark -= 1
    invalid = tuple(sorted(write_id for write_id in hidden if write_id < mark))
    min_open = next((write_id for write_id in invalid if write_id not in aborted), None)
    return ValidWriteIdList(
        f"{name.db}.{name.table}", max(mark, 0), min_open, invalid, frozenset(aborted.intersection(invalid))
    )


def _text(at: datetime) -> str:
    """Format an instant for people who compare it with another."""
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S}.{at.microsecond // 1000:03d} UTC"
