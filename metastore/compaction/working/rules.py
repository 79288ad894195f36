"""Whether a full-ACID compaction wrote what it read: the rule by which its outputs are believed before they are named.

Rule: nobody counts twice. What went in is the rows in the input files' footers; what came to the tasks that write, and
what they left out and why, they count themselves; what came out is in the outputs' footers, read back. For each bucket
these agree, each output is in order without a row twice, and has exactly the name that its transaction hides.
Source: HIVE-23763, HIVE-29567; ACID-10 to ACID-12.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from metastore.acid.bucket import MAX_WRITER_ID
from metastore.acid.events import EVENT_COLUMNS
from metastore.acid.names import BaseName, DeltaName, bucket_file
from metastore.acid.orc_footer import KEY_INDEX, STATS, VERSION, RowKey, acid_entries
from metastore.errors import MetaError


class UnprovenError(MetaError):
    """A compaction's outputs are not what its inputs must become: they may never be seen."""

    def __init__(self, differences: Sequence[str], kept: str) -> None:
        where = f"; what it wrote is kept in {kept}" if kept else ""
        super().__init__(
            f"The compaction did not write what it read, so nothing was changed: {'; '.join(differences)}{where}"
        )
        self.differences = tuple(differences)


class InputFile(NamedTuple):
    """A file that a job says it reads, and the rows that its footer says."""

    path: str
    bucket: int
    rows: int
    is_of_deletes: bool = False


class Came(NamedTuple):
    """The events that came to the writers of one bucket, and what became of them; as the tasks counted."""

    lowest_bucket: int
    highest_bucket: int
    inserts: int = 0
    deletes: int = 0
    hidden_inserts: int = 0
    hidden_deletes: int = 0
    deleted: int = 0
    """Insert events that are left out because a delete event names their row."""
    found: int = 0
    """Rows that delete events name and that are there."""
    highest_named: int = -1
    """The highest write id of a row that a delete event names."""


class Footer(NamedTuple):
    """What an output file says when it is read back."""

    rows: int
    stripes: int
    columns: tuple[str, ...]
    notes: dict[str, bytes]


class OutputFile(NamedTuple):
    """A file as its task reports it; ``footer``: None where it cannot be looked at before it has its name."""

    directory: BaseName | DeltaName
    name: str
    bucket: int
    rows: int
    unsorted: int = 0
    times: int = 0
    """How many of its events have one and the same ROW__ID, at most."""
    last: RowKey | None = None
    footer: Footer | None = None


@dataclass(frozen=True)
class Evidence:
    """A compaction as it was carried out, before anything of it has its name."""

    kind: str
    highest_write_id: int
    txn_id: int
    lowest_write_id: int
    """Of the inputs' deltas; a minor compaction's outputs begin there."""
    may_hide: bool
    """Whether the inputs hold rows that the compaction must not see: of aborted write ids, among others."""
    there: tuple[str, ...]
    """Every file with rows that the listing has of what is compacted."""
    inputs: tuple[InputFile, ...]
    came: tuple[Came, ...]
    outputs: tuple[OutputFile, ...]
    directories: tuple[BaseName | DeltaName, ...]

    @property
    def is_major(self) -> bool:
        """Whether deletes are applied."""
        return self.kind == "major"


def differences(evidence: Evidence) -> list[str]:
    """What is not as it must be; nothing when the outputs are proven."""
    return [
        *_inputs(evidence),
        *_names(evidence),
        *_counts(evidence),
        *(text for one in evidence.outputs for text in [*_file(one), *footer_differences(one)]),
    ]


def footer_differences(file: OutputFile) -> Iterator[str]:
    """Whether an output, read back, says what its task reported and what Hive needs; nothing where it was not read."""
    footer, place = file.footer, f"{file.directory}/{file.name}"
    if footer is None:
        return
    if footer.rows != file.rows:
        yield f"{place} has {footer.rows} rows, and its task wrote {file.rows}"
    if footer.columns != EVENT_COLUMNS:
        yield f"{place} has the columns {', '.join(footer.columns)}, which are not those of ACID files"
    expected = acid_entries((), file.rows, is_delete=_is_delete(file.directory))
    for note in (STATS, VERSION):
        if footer.notes.get(note) != expected[note]:
            yield f"{place} notes {note} as {footer.notes.get(note)!r}, which must be {expected[note]!r}"
    keys = footer.notes.get(KEY_INDEX, b"").decode("utf-8", "replace").split(";")[:-1]
    if len(keys) != footer.stripes:
        yield f"{place} has {len(keys)} keys in its index for {footer.stripes} stripes"
    elif file.last is not None and keys and keys[-1] != ",".join(map(str, file.last)):
        yield f"The key index of {place} ends with {keys[-1]}, and its last event is {','.join(map(str, file.last))}"


def _inputs(evidence: Evidence) -> Iterator[str]:
    read = Counter(file.path for file in evidence.inputs)
    for path in sorted(set(evidence.there) - read.keys()):
        yield f"{path} was not read"
    for path in sorted(read.keys() - set(evidence.there)):
        yield f"{path} was read and is no part of what is compacted"
    for path, times in sorted(read.items()):
        if times > 1:
            yield f"{path} was read {times} times"


def _names(evidence: Evidence) -> Iterator[str]:
    if evidence.is_major:
        expected: set[BaseName | DeltaName] = {BaseName(evidence.highest_write_id, evidence.txn_id)}
        if missing := expected - set(evidence.directories):
            yield f"{missing.pop()} was not written"
    else:
        ids = (evidence.lowest_write_id, evidence.highest_write_id, None, evidence.txn_id)
        expected = {DeltaName(*ids, is_delete=is_delete) for is_delete in (False, True)}
    for name in evidence.directories:
        if name not in expected:
            yield f"{name} was written, where only {' and '.join(sorted(map(str, expected)))} may be"


def _counts(evidence: Evidence) -> Iterator[str]:
    """Rows in = rows out + rows left out, for each bucket."""
    for one in evidence.came:
        if one.lowest_bucket != one.highest_bucket:
            yield f"One task's writer got events of the buckets {one.lowest_bucket} to {one.highest_bucket}"
    came = {bucket: _sum(one for one in evidence.came if one.lowest_bucket == bucket) for bucket in _buckets(evidence)}
    for bucket, here in sorted(came.items()):
        for word, is_delete in (("insert", False), ("delete", True)):
            there = sum(one.rows for one in evidence.inputs if one.bucket == bucket and one.is_of_deletes == is_delete)
            seen, hidden = (here.deletes, here.hidden_deletes) if is_delete else (here.inserts, here.hidden_inserts)
            if there != seen + hidden:
                yield f"Bucket {bucket}: the input files have {there} {word} events, and {seen + hidden} were read"
            if hidden and not evidence.may_hide:
                yield f"Bucket {bucket}: {hidden} {word} events were left out as invisible, and none is"
            left_out = (seen if is_delete else here.deleted) if evidence.is_major else 0
            out = sum(
                one.rows for one in evidence.outputs if one.bucket == bucket and _is_delete(one.directory) == is_delete
            )
            if seen != out + left_out:
                yield (
                    f"Bucket {bucket}: of {seen} {word} events {out} were written and {left_out} left out as deleted"
                )
        if here.deleted != here.found:
            yield f"Bucket {bucket}: {here.deleted} events were left out for {here.found} deleted rows"
        if evidence.is_major and here.highest_named > evidence.highest_write_id:
            yield (
                f"Bucket {bucket}: a delete event names a row of write id {here.highest_named}, above the mark "
                f"{evidence.highest_write_id}: it would be lost"
            )


def _file(file: OutputFile) -> Iterator[str]:
    place = f"{file.directory}/{file.name}"
    if not 0 <= file.bucket <= MAX_WRITER_ID:
        yield f"{place} holds events of the bucket {file.bucket}, which no bucket number stands for"
    elif file.name != bucket_file(file.bucket):
        yield f"{place} holds events of the bucket {file.bucket}"
    if file.unsorted:
        yield f"{place} has {file.unsorted} events that do not belong behind the ones before them"
    if file.times > 1 and not _is_delete(file.directory):
        yield f"{place} has a row {file.times} times"


def _buckets(evidence: Evidence) -> set[int]:
    return {
        *(one.bucket for one in evidence.inputs),
        *(one.lowest_bucket for one in evidence.came),
        *(one.bucket for one in evidence.outputs),
    }


def _sum(parts: Iterable[Came]) -> Came:
    came = list(parts)
    return Came(
        0,
        0,
        inserts=sum(one.inserts for one in came),
        deletes=sum(one.deletes for one in came),
        hidden_inserts=sum(one.hidden_inserts for one in came),
        hidden_deletes=sum(one.hidden_deletes for one in came),
        deleted=sum(one.deleted for one in came),
        found=sum(one.found for one in came),
        highest_named=max((one.highest_named for one in came), default=-1),
    )


def _is_delete(directory: BaseName | DeltaName) -> bool:
    return isinstance(directory, DeltaName) and directory.is_delete
