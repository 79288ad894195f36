"""What the model remembers, and the small words of its parts. Nothing here knows the service."""

import re
from dataclasses import dataclass, field
from typing import NamedTuple

from metastore.thrift_gen.hive_metastore import ttypes

EPOCH_MS = 1_767_225_600_000
"""The instant at which every story begins: 2026-01-01T00:00:00Z."""

_SPECIAL = frozenset("\"#%'*/:=?\\{[]^\x7f") | frozenset(map(chr, range(32)))


class Place(NamedTuple):
    """A database (table ""), a table (partition "") or a partition, in the spelling that is stored."""

    db: str
    table: str = ""
    partition: str = ""

    def __str__(self):
        return "/".join(part for part in self if part)

    @property
    def whole_table(self):
        return self._replace(partition="")


class Component(NamedTuple):
    """What a transaction says it writes; letter i, u, d or c."""

    place: Place
    letter: str

    @property
    def changes_rows(self):
        return self.letter in {"u", "d"}


class Write(NamedTuple):
    """A committed change that later commits are checked against."""

    txn_id: int
    commit_id: int
    place: Place
    letter: str
    guarded: bool = False


class Completed(NamedTuple):
    """A committed write, for compaction."""

    txn_id: int
    place: Place
    write_id: int | None
    changed_rows: bool


@dataclass
class Txn:
    id: int
    kind: int
    user: str
    host: str
    agent: str
    started: int
    alive: int
    state: str = "open"
    beats: int = 0
    code: int | None = None
    commit_id: int = 0
    ended: int = 0
    listed: bool = True
    may_publish: bool = False
    components: dict[Component, int | None] = field(default_factory=dict)


@dataclass
class WriteIds:
    """Of a table: the next id, who owns which, the highest that lost its owner."""

    next: int = 1
    purged: int = 0
    owners: dict[int, int] = field(default_factory=dict)

    def of(self, txn_id):
        return next((write_id for write_id, owner in self.owners.items() if owner == txn_id), None)


@dataclass
class Lock:
    """One row of the queue."""

    ext_id: int
    int_id: int
    txn_id: int
    place: Place
    kind: int
    request: ttypes.LockRequest
    alive: int = 0
    beats: int = 0
    acquired_at: int | None = None
    blocker: tuple[int, int] | None = None


def stored(partition):
    """Return a partition name as it is stored: keys in lower case, awkward characters as %XX; a text that is no such name stays."""
    segments = [segment for segment in partition.split("/") if segment]
    pairs = [segment.split("=", 1) if re.fullmatch("[^/=]+=.+", segment, re.DOTALL) else None for segment in segments]
    if not pairs or None in pairs:
        return partition
    return "/".join(f"{_escaped(_plain(key).lower())}={_escaped(_plain(value))}" for key, value in pairs)


def place(db, table=None, partition=None):
    return Place(db.lower(), (table or "").lower(), stored(partition or "") if table else "")


def table_of(full_name):
    """``db.table`` or ``catalog.db.table``."""
    return place(*full_name.split(".")[-2:])


def bits(flags):
    """One bit for each flag, the first in the lowest bit of the first byte; no zero bytes at the end."""
    packed = bytearray((len(flags) + 7) // 8)
    for position, flag in enumerate(flags):
        if flag:
            packed[position // 8] += 2 ** (position % 8)
    while packed and not packed[-1]:
        del packed[-1]
    return bytes(packed)


def _plain(text):
    return re.sub("%([0-9a-fA-F]{2})", lambda match: chr(int(match[1], 16)), text)


def _escaped(text):
    return "".join(f"%{ord(letter):02X}" if letter in _SPECIAL else letter for letter in text)
