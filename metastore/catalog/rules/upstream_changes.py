"""The outcome of a change that went to the upstream, judged by what the upstream has now."""

from datetime import datetime, timedelta
from enum import StrEnum
from typing import NamedTuple

from metastore.ids import TableName


class ChangeKind(StrEnum):
    """The change that went to the upstream."""

    DROP_TABLE = "drop_table"
    DROP_PARTITION = "drop_partition"
    RENAME_TABLE = "rename_table"
    RENAME_PARTITION = "rename_partition"


class Note(NamedTuple):
    """A change that is about to happen, of a table or of one partition (by canonical name).

    ``identity``: of the table at the upstream, 0: not looked up. ``mark``: the next write id at the time of the note;
    everything with a lower id belongs to the table as it was then, for ever.
    """

    kind: ChangeKind
    table: TableName
    identity: int
    mark: int
    noted_at: datetime
    partition: str = ""
    new_table: TableName | None = None
    new_partition: str = ""
    id: int = 0


class SeenUpstream(NamedTuple):
    """The upstream's answer about the noted name: the table's identity (None: no table); ``partition``: it exists."""

    table: int | None
    partition: bool = False


class NoteVerdict(StrEnum):
    """The decision about a note that nobody works on."""

    HAPPENED = "happened"
    WAIT = "wait"
    """The upstream may still be at it."""
    DID_NOT_HAPPEN = "did not happen"


def verdict(note: Note, seen: SeenUpstream, now: datetime, patience: timedelta) -> NoteVerdict:
    """Decide if a noted change has happened. An object that is still there after ``patience`` will stay."""
    same = seen.table is not None and note.identity in {0, seen.table}
    unchanged = same and (not note.partition or seen.partition)
    if not unchanged:
        return NoteVerdict.HAPPENED
    return NoteVerdict.DID_NOT_HAPPEN if now - note.noted_at > patience else NoteVerdict.WAIT
