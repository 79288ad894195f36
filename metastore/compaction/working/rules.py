"""Proof that a full-ACID compaction wrote the rows that it read, needed before its outputs get their names.

Rule: no row is read again. The input files' footers have the numbers of rows that go in; the writing tasks count the
events that reach them, and those that they leave out, by reason; the outputs' footers, read back, have the numbers that
come out. For each bucket these agree, each output is in order without a row twice, and has exactly the name that its
transaction hides.
Source: HIVE-23763, HIVE-29567; ACID-10 to ACID-12.

A rebalance deals the remaining rows to buckets anew: as many come out as went in and are not left out, each bucket
holds its share, and the row ids ascend by one from 0, from bucket to bucket (COMP-16).
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from metastore.acid.bucket import MAX_WRITER_ID
from metastore.acid.events import EVENT_COLUMNS
from metastore.acid.names import BaseName, DeltaName, bucket_file
from metastore.acid.orc_footer import KEY_INDEX, STATS, VERSION, RowKey, acid_entries
from metastore.acid.state import AcidState
from metastore.errors import MetaError


class UnprovenError(MetaError):
    """Error: a compaction's outputs do not hold its inputs' rows, so they may never become visible."""

    def __init__(self, differences: Sequence[str], kept: str) -> None:
        where = f"; what it wrote is kept in {kept}" if kept else ""
        super().__init__(
            f"The compaction did not write what it read, so nothing was changed: {'; '.join(differences)}{where}"
        )
        self.differences = tuple(differences)


class InputFile(NamedTuple):
    """A file that a job reads, and the number of rows in its footer."""

    path: str
    bucket: int
    rows: int
    is_of_deletes: bool = False


class Tally(NamedTuple):
    """A task's counts of the events for a writer, in a file or left out. A writer has the number of its bucket."""

    lowest_writer: int
    highest_writer: int
    inserts: int = 0
    deletes: int = 0
    hidden_inserts: int = 0
    hidden_deletes: int = 0
    deleted: int = 0
    """Insert events that were left out because a delete event names their row."""
    found: int = 0
    """Rows that delete events name and that reached the task."""
    highest_named: int = -1
    """The highest write id of a row that a delete event names."""


class Footer(NamedTuple):
    """The footer of an output file, read back."""

    rows: int
    stripes: int
    columns: tuple[str, ...]
    notes: dict[str, bytes]


class OutputFile(NamedTuple):
    """A file as its task reports it; ``footer``: None for an upload, which cannot be read before it has its name."""

    directory: BaseName | DeltaName
    name: str
    bucket: int
    rows: int
    unsorted: int = 0
    times: int = 0
    """The largest number of its events with the same ROW__ID."""
    last: RowKey | None = None
    first_row_id: int = 0
    jumps: int = 0
    """The number of its events whose row id is not one above that of the previous event."""
    footer: Footer | None = None


@dataclass(frozen=True)
class OutputEvidence:
    """A compaction that was carried out, before any output has its name."""

    kind: str
    highest_write_id: int
    txn_id: int
    lowest_write_id: int
    """The lowest of the inputs' deltas, with which the names of a minor compaction's outputs begin."""
    may_hide: bool
    """True if the inputs may hold rows that the compaction must not see, for example of aborted write ids."""
    there: tuple[str, ...]
    """Every file with rows of the compacted directories, by the listing."""
    inputs: tuple[InputFile, ...]
    tallies: tuple[Tally, ...]
    outputs: tuple[OutputFile, ...]
    directories: tuple[BaseName | DeltaName, ...]
    dealt: tuple[int, ...] = ()
    """The first row id of each bucket of a rebalance, and as the last number how many rows there are."""

    @property
    def is_major(self) -> bool:
        """True if deletes are applied."""
        return self.kind == "major"

    @property
    def is_rebalance(self) -> bool:
        """True if rows get new ids."""
        return self.kind == "rebalance"


def dealt(rows: int, buckets: int) -> tuple[int, ...]:
    """Return the first number of each bucket, and the number of rows, for rows numbered from 0 in a rebalance.

    Buckets differ by at most one row, while Hive leaves the last ones short or empty. There are no more buckets than
    rows.
    """
    count = min(rows, buckets)
    return (*(-(-number * rows // count) for number in range(count)), rows)


def later_deletes(state: AcidState, mark: int) -> DeltaName | None:
    """Return a delete delta above the mark of a compaction, or one that may hold delete events; ``state``: a reader's.

    Its events name rows by their present ids. After a rebalance up to the mark no reader would find them.
    """
    return next(
        (
            delta.name
            for delta in state.deltas
            if delta.name.max_write_id > mark and (delta.is_delete or not (delta.is_marked or delta.may_be_raw))
        ),
        None,
    )


def differences(evidence: OutputEvidence) -> list[str]:
    """Return the faults in sentences; empty if the outputs are proven."""
    return [
        *_inputs(evidence),
        *_names(evidence),
        *(_shares(evidence) if evidence.is_rebalance else _counts(evidence)),
        *(text for file in evidence.outputs for text in [*_file(file), *footer_differences(file)]),
    ]


def footer_differences(file: OutputFile) -> Iterator[str]:
    """Yield differences of an output's footer from its task's report and Hive's needs; none if it was not read."""
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


def _inputs(evidence: OutputEvidence) -> Iterator[str]:
    read = Counter(file.path for file in evidence.inputs)
    for path in sorted(set(evidence.there) - read.keys()):
        yield f"{path} was not read"
    for path in sorted(read.keys() - set(evidence.there)):
        yield f"{path} was read and is no part of what is compacted"
    for path, times in sorted(read.items()):
        if times > 1:
            yield f"{path} was read {times} times"


def _names(evidence: OutputEvidence) -> Iterator[str]:
    if evidence.is_major or evidence.is_rebalance:
        expected: set[BaseName | DeltaName] = {BaseName(evidence.highest_write_id, evidence.txn_id)}
        if missing := expected - set(evidence.directories):
            yield f"{missing.pop()} was not written"
    else:
        ids = (evidence.lowest_write_id, evidence.highest_write_id, None, evidence.txn_id)
        expected = {DeltaName(*ids, is_delete=is_delete) for is_delete in (False, True)}
    for name in evidence.directories:
        if name not in expected:
            yield f"{name} was written, where only {' and '.join(sorted(map(str, expected)))} may be"


def _shares(evidence: OutputEvidence) -> Iterator[str]:
    """Yield faults of a rebalance: rows in must equal rows out plus rows left out, and each bucket must hold its share.

    Row ids must continue from bucket to bucket.
    """
    read = _sum(evidence.tallies)
    rows, deletes = (
        sum(file.rows for file in evidence.inputs if file.is_of_deletes == is_delete) for is_delete in (False, True)
    )
    if rows != (seen := read.inserts + read.hidden_inserts):
        yield f"The input files have {rows} rows, and {seen} were read"
    if deletes != (seen := read.deletes + read.hidden_deletes):
        yield f"The input files have {deletes} delete events, and {seen} were read"
    if (hidden := read.hidden_inserts + read.hidden_deletes) and not evidence.may_hide:
        yield f"{hidden} events were left out as invisible, and none is"
    yield from _deleted("The rebalance", evidence, read)
    shares = list(pairwise(evidence.dealt))
    if evidence.dealt[-1] != (left := rows - read.hidden_inserts - read.deleted):
        yield f"{evidence.dealt[-1]} rows were dealt to buckets, and the input files have {left}"
    written = {output.bucket: output for output in evidence.outputs if output.rows}
    if len(written) < sum(1 for output in evidence.outputs if output.rows):
        yield "A bucket has several files"
    for bucket in sorted(written.keys() | set(range(len(shares)))):
        first, end = shares[bucket] if bucket < len(shares) else (0, 0)
        file = written.get(bucket)
        if file is None or file.rows != end - first:
            yield f"Bucket {bucket} has {file.rows if file else 0} rows instead of {end - first}"
        elif file.first_row_id != first or file.jumps:
            yield (
                f"The row ids of bucket {bucket} begin with {file.first_row_id} instead of {first}, "
                f"and {file.jumps} of them do not follow the one before them"
            )


def _counts(evidence: OutputEvidence) -> Iterator[str]:
    """Yield faults of the counts: for each bucket, rows in must equal rows out plus rows left out."""
    for tally in evidence.tallies:
        if tally.lowest_writer != tally.highest_writer:
            yield f"One task's writer got events of the buckets {tally.lowest_writer} to {tally.highest_writer}"
    sums = {
        bucket: _sum(tally for tally in evidence.tallies if tally.lowest_writer == bucket)
        for bucket in _buckets(evidence)
    }
    for bucket, here in sorted(sums.items()):
        for word, is_delete in (("insert", False), ("delete", True)):
            there = sum(
                file.rows for file in evidence.inputs if file.bucket == bucket and file.is_of_deletes == is_delete
            )
            seen, hidden = (here.deletes, here.hidden_deletes) if is_delete else (here.inserts, here.hidden_inserts)
            if there != seen + hidden:
                yield f"Bucket {bucket}: the input files have {there} {word} events, and {seen + hidden} were read"
            if hidden and not evidence.may_hide:
                yield f"Bucket {bucket}: {hidden} {word} events were left out as invisible, and none is"
            left_out = (seen if is_delete else here.deleted) if evidence.is_major else 0
            out = sum(
                file.rows
                for file in evidence.outputs
                if file.bucket == bucket and _is_delete(file.directory) == is_delete
            )
            if seen != out + left_out:
                yield (
                    f"Bucket {bucket}: of {seen} {word} events {out} were written and {left_out} left out as deleted"
                )
        yield from _deleted(f"Bucket {bucket}", evidence, here)


def _deleted(place: str, evidence: OutputEvidence, read: Tally) -> Iterator[str]:
    """Yield faults of deletes: each deleted row must be left out once, and no delete event may be lost."""
    if read.deleted != read.found:
        yield f"{place}: {read.deleted} events were left out for {read.found} deleted rows"
    if (evidence.is_major or evidence.is_rebalance) and read.highest_named > evidence.highest_write_id:
        yield (
            f"{place}: a delete event names a row of write id {read.highest_named}, above the mark "
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


def _buckets(evidence: OutputEvidence) -> set[int]:
    return {
        *(file.bucket for file in evidence.inputs),
        *(tally.lowest_writer for tally in evidence.tallies),
        *(file.bucket for file in evidence.outputs),
    }


def _sum(parts: Iterable[Tally]) -> Tally:
    tallies = list(parts)
    return Tally(
        0,
        0,
        inserts=sum(tally.inserts for tally in tallies),
        deletes=sum(tally.deletes for tally in tallies),
        hidden_inserts=sum(tally.hidden_inserts for tally in tallies),
        hidden_deletes=sum(tally.hidden_deletes for tally in tallies),
        deleted=sum(tally.deleted for tally in tallies),
        found=sum(tally.found for tally in tallies),
        highest_named=max((tally.highest_named for tally in tallies), default=-1),
    )


def _is_delete(directory: BaseName | DeltaName) -> bool:
    return isinstance(directory, DeltaName) and directory.is_delete
