"""Snapshots of readers: valid write-id lists (per table) and valid transaction lists, and their text forms.

Rule: an id is valid when it is not above the high-water mark and not listed as an exception; exceptions are the open
and the aborted ids, sorted. The texts are those of Hive's ``hive.txn.valid.writeids``,
``hive.txn.tables.valid.writeids`` and ``hive.txn.valid.txns``. Hive 4 writes five or more transaction ids in a row as
``1-6``, which Hive 3 cannot read: every form is read here, and ids are written singly, which 3.0 to 4.2 read.
Source: WID-7 to WID-12; Hive's ValidReaderWriteIdList, ValidCompactorWriteIdList, ValidReadTxnList and
ValidTxnWriteIdList.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from itertools import compress
from typing import Self

from metastore.errors import InvalidInputError

NO_OPEN = 2**63 - 1
"""The text in place of the smallest open id if nothing is open."""

MOST_IN_RANGES = 500_000
"""The most ids in the ranges of one text: a text of 20 characters must not ask for gigabytes."""

_ID_FIELDS = 4
_CHARACTERS = re.compile("[0-9,:-]*")
_RANGE = re.compile("([0-9]+)-([0-9]+)")
_LOOK_UPS = 20
"""A list so long is searched in the time that it takes to go through so many of its ids."""
_FLAGS = bytes.maketrans(b"01", b"\0\1")
_TOO_LONG = re.compile("[0-9]{20}")
_HIVE_2 = re.compile("([0-9]+:[0-9]+):([0-9]+(?::[0-9]+){2,})")
_FORM = "highWatermark:minOpen:open,low-high,...:aborted,low-high,..."


class RangeState(StrEnum):
    """The part of a range whose ids have a property: all, some or none."""

    NONE = "none"
    SOME = "some"
    ALL = "all"


@dataclass(frozen=True)
class ValidWriteIdList:
    """One table's write ids as one reader sees them.

    ``invalid`` holds the open and aborted write ids up to the mark, sorted; ``aborted`` those of them that are aborted.
    """

    table: str
    high_watermark: int
    min_open_write_id: int | None = None
    invalid: tuple[int, ...] = ()
    aborted: frozenset[int] = field(default=frozenset())

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read ``db.table:hwm:minOpen:open,open:aborted,aborted``; trailing empty fields may be absent.

        Raises: InvalidInputError.
        """
        table, separator, ids = text.partition(":")
        if not separator:
            raise _unreadable("write-id list", text, "db.table:highWatermark:minOpen:open,...:aborted,...")
        mark, smallest, opened, aborted = _parse_ids(ids, text)
        return cls(table, mark, smallest if opened or aborted else None, _merged(opened, aborted), frozenset(aborted))

    def format(self) -> str:
        """Return the text that ``parse`` reads, always with all five fields."""
        return f"{self.table}:{_format_ids(self.high_watermark, self.min_open_write_id, self.invalid, self.aborted)}"

    @property
    def open(self) -> tuple[int, ...]:
        """The open write ids up to the mark, sorted."""
        return tuple(write_id for write_id in self.invalid if write_id not in self.aborted)

    @property
    def highest_valid(self) -> int:
        """The last write id whose rows may be seen; 0 if there is none."""
        last = self.high_watermark
        for invalid in reversed(self.invalid):
            if invalid != last:
                break
            last -= 1
        return last

    def is_valid(self, write_id: int) -> bool:
        """Return True if the rows of this write id may be seen."""
        return write_id <= self.high_watermark and not _contains(self.invalid, write_id)

    def is_aborted(self, write_id: int) -> bool:
        """Return True if the write id is known to be aborted."""
        return write_id in self.aborted

    def is_valid_base(self, write_id: int) -> bool:
        """Return True if a compacted base up to this write id holds nothing that is still open for the reader."""
        below_open = self.min_open_write_id is None or write_id < self.min_open_write_id
        return below_open and write_id <= self.high_watermark

    def range_state(self, low: int, high: int) -> RangeState:
        """Return whether all, some or no write ids from low to high (both included) are valid."""
        if low > self.high_watermark:
            return RangeState.NONE
        missing = max(0, high - self.high_watermark) + _count(self.invalid, low, high)
        return _state(high - low + 1 - missing, high - low + 1)

    def aborted_range_state(self, low: int, high: int) -> RangeState:
        """Return whether all, some or no write ids from low to high (both included) are aborted."""
        if low > self.high_watermark:
            return RangeState.NONE
        inside = self.invalid_between(low, high)
        return _state(sum(write_id in self.aborted for write_id in inside), high - low + 1)

    def invalid_between(self, low: int, high: int) -> tuple[int, ...]:
        """Return the open and aborted write ids of a range, up to the mark."""
        return self.invalid[bisect_left(self.invalid, low) : bisect_right(self.invalid, high)]

    def with_own(self, write_id: int) -> Self:
        """Return the list for the transaction that owns this write id: its own earlier statements count as valid.

        If the write id lies above the mark, the ids between become open: those of other transactions must not appear
        with it.
        """
        invalid = tuple(other for other in self.invalid if other != write_id)
        if write_id > self.high_watermark:
            invalid += tuple(range(self.high_watermark + 1, write_id))
        open_ids = [other for other in invalid if other not in self.aborted]
        mark = max(self.high_watermark, write_id)
        return type(self)(self.table, mark, min(open_ids, default=None), invalid, self.aborted - {write_id})

    def for_compactor(self) -> "CompactorWriteIdList":
        """Return the list with which a compactor works.

        The mark lies below every open id, so only aborted ids are exceptions.
        """
        open_ids = self.open
        mark = min(self.high_watermark, open_ids[0] - 1) if open_ids else self.high_watermark
        aborted = frozenset(write_id for write_id in self.aborted if write_id <= mark)
        return CompactorWriteIdList(self.table, mark, None, tuple(sorted(aborted)), aborted)


@dataclass(frozen=True)
class CompactorWriteIdList(ValidWriteIdList):
    """A compactor's list: a directory is taken whole or not at all, aborted rows inside are dropped row by row."""

    def range_state(self, low: int, high: int) -> RangeState:  # noqa: ARG002 - the signature is the reader list's
        """Return ALL if the range ends at or below the mark, else NONE; never SOME."""
        return RangeState.ALL if high <= self.high_watermark else RangeState.NONE


@dataclass(frozen=True)
class ValidTxnList:
    """Transactions as one reader sees them: decides about ``_v`` directories.

    ``exceptions`` holds the open and aborted ids up to the mark, sorted; ``aborted`` those of them that are aborted.
    """

    high_watermark: int
    min_open_txn: int | None = None
    exceptions: tuple[int, ...] = ()
    aborted: frozenset[int] = field(default=frozenset())

    @cached_property
    def exceptions_text(self) -> str:
        """The exceptions with commas between, cached: for a list of 100,000 this takes longer than all later steps."""
        return ",".join(map(str, self.exceptions))

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read ``hwm:minOpen:open,open:aborted,aborted``; trailing empty fields may be absent.

        Hive 2.3's ``hwm:minOpen:id:id:id`` does not tell which ids are aborted, so all of its ids count as open. Its
        texts of one or two ids look like later ones.
        Raises: InvalidInputError.
        """
        old = _HIVE_2.fullmatch(text)
        if old:
            text = f"{old[1]}:{old[2].replace(':', ',')}"
        mark, smallest, opened, aborted = _parse_ids(text, text)
        return cls(mark, smallest if opened or aborted else None, _merged(opened, aborted), frozenset(aborted))

    @classmethod
    def everything(cls) -> Self:
        """Return a list for which every transaction is committed."""
        return cls(NO_OPEN)

    def format(self) -> str:
        """Return the text that ``parse`` reads, always with all four fields."""
        return _format_ids(self.high_watermark, self.min_open_txn, self.exceptions, self.aborted)

    def without(self, txn_ids: Iterable[int], high_watermark: int | None = None) -> Self:
        """Return the list with these transactions, and all above ``high_watermark``, counted as open."""
        exceptions = tuple(sorted({*self.exceptions, *txn_ids}))
        return replace(
            self,
            high_watermark=self.high_watermark if high_watermark is None else high_watermark,
            min_open_txn=min((txn_id for txn_id in exceptions if txn_id not in self.aborted), default=None),
            exceptions=exceptions,
        )

    def is_valid(self, txn_id: int) -> bool:
        """Return True if the transaction is committed for this reader; 0, "no transaction", is always valid."""
        return txn_id <= self.high_watermark and not _contains(self.exceptions, txn_id)

    def hidden(self, txn_ids: Iterable[int]) -> set[int]:
        """Return the transactions that are not committed for this reader: those for which `is_valid` is False."""
        wanted = set(txn_ids)
        if len(wanted) * _LOOK_UPS < len(self.exceptions):
            return {txn_id for txn_id in wanted if not self.is_valid(txn_id)}
        listed = wanted.intersection(self.exceptions)
        if max(wanted, default=0) > self.high_watermark:
            listed.update(txn_id for txn_id in wanted if txn_id > self.high_watermark)
        return listed

    def is_aborted(self, txn_id: int) -> bool:
        """Return True if the transaction is known to be aborted."""
        return txn_id in self.aborted


@dataclass(frozen=True)
class TxnWriteIds:
    """The write-id lists of all tables that a transaction reads."""

    txn_id: int
    tables: tuple[ValidWriteIdList, ...] = ()

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read ``txnId$list$list``.

        Raises: InvalidInputError.
        """
        txn_id, *lists = text.split("$")
        if not txn_id.isdecimal():
            raise _unreadable("list of write-id lists", text, "txnId$list$list")
        return cls(int(txn_id), tuple(ValidWriteIdList.parse(part) for part in lists if part))

    def format(self) -> str:
        """Return the text that ``parse`` reads."""
        return "$".join([str(self.txn_id), *(table.format() for table in self.tables)])

    def of_table(self, table: str) -> ValidWriteIdList | None:
        """Return the list of ``db.table``, if the transaction has it."""
        return next((write_ids for write_ids in self.tables if write_ids.table == table), None)


def decode_aborted_bits(exceptions: Sequence[int], bits: bytes) -> frozenset[int]:
    """Return the aborted ids among the exceptions; bits behind the last exception mean nothing."""
    digits = format(int.from_bytes(bits, "little"), "b").encode()
    return frozenset(compress(exceptions, digits[::-1].translate(_FLAGS)))


def _contains(ids: Sequence[int], wanted: int) -> bool:
    position = bisect_left(ids, wanted)
    return position < len(ids) and ids[position] == wanted


def _count(ids: Sequence[int], low: int, high: int) -> int:
    return bisect_right(ids, high) - bisect_left(ids, low)


def _state(count: int, size: int) -> RangeState:
    if count <= 0:
        return RangeState.NONE
    return RangeState.ALL if count == size else RangeState.SOME


def _merged(opened: Iterable[int], aborted: Iterable[int]) -> tuple[int, ...]:
    return tuple(sorted({*opened, *aborted}))


def ids_in_ranges(text: str) -> int:
    """Count the ids in the ranges of a list's text; 0 if it has none, or numbers that are no ids."""
    if "-" not in text or _TOO_LONG.search(text):
        return 0
    return sum(max(0, int(high) - int(low) + 1) for low, high in _RANGE.findall(text))


def listed_ids(text: str) -> int:
    """Estimate the number of ids in a list's text. Raises: InvalidInputError if its ranges ask for too many."""
    if "-" in text and _TOO_LONG.search(text):
        raise _unreadable("id list", text, _FORM)
    size = ids_in_ranges(text)
    if size > MOST_IN_RANGES:
        raise InvalidInputError(
            f"The ranges of the id list {text[:200]!r} stand for {size} ids: at most {MOST_IN_RANGES} are read"
        )
    return text.count(",") + text.count(":") + size


def _parse_ids(ids: str, whole: str) -> tuple[int, int | None, list[int], list[int]]:
    """Parse mark, smallest open id, open ids and aborted ids of ``hwm:minOpen:open:aborted``."""
    fields = ids.split(":")
    try:
        if len(fields) > _ID_FIELDS or not _CHARACTERS.fullmatch(ids) or "--" in ids:
            raise _unreadable("id list", whole, _FORM)
        listed_ids(ids)
        mark = int(fields[0])
        smallest = int(fields[1]) if len(fields) > 1 and fields[1] else NO_OPEN
        opened, aborted = (_spelled_out(fields[place]) if len(fields) > place else [] for place in (2, 3))
    except ValueError:
        raise _unreadable("id list", whole, _FORM) from None
    if max(mark, smallest, *opened, *aborted) > NO_OPEN:
        raise _unreadable("id list", whole, f"{_FORM} with ids up to {NO_OPEN}")
    return mark, None if smallest == NO_OPEN else smallest, opened, aborted


def _spelled_out(ids: str) -> list[int]:
    """Expand ``3,5-7`` to 3, 5, 6, 7. Raises: ValueError."""
    if "-" not in ids:
        return [int(number) for number in ids.split(",") if number]
    spelled: list[int] = []
    for term in ids.split(","):
        low, is_range, high = term.partition("-")
        spelled.extend(range(int(low), int(high) + 1) if is_range else [int(low)] if low else [])
    return spelled


def _format_ids(mark: int, smallest: int | None, exceptions: Sequence[int], aborted: frozenset[int]) -> str:
    opened = ",".join(str(exception) for exception in exceptions if exception not in aborted)
    gone = ",".join(str(exception) for exception in exceptions if exception in aborted)
    return f"{mark}:{NO_OPEN if smallest is None else smallest}:{opened}:{gone}"


def _unreadable(what: str, text: str, form: str) -> InvalidInputError:
    return InvalidInputError(f"Cannot read the {what} {text[:200]!r}: the form is {form}")
