"""Violations of the format that a listing of an ACID directory shows: names, nesting, overlaps, leftovers.

Rule: a finding is a path that some reader reads wrongly or refuses, or that no reader needs; paths that the format
allows, or that the Cleaner has yet to remove, are none. ``is_unneeded`` is True only for paths that no reader of any
snapshot reads.
Source: ACID-1 to ACID-6, ACID-17, ACID-21, ACID-33; Hive's AcidUtils.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from metastore.acid.names import (
    NO_BUCKET,
    DeltaName,
    MalformedNameError,
    is_hidden,
    parse_directory,
    parse_file,
    staging_owner,
)
from metastore.acid.snapshots import ValidTxnList, ValidWriteIdList
from metastore.acid.state import AcidState, BaseDirectory, DeltaDirectory, Listed, NotEnoughHistoryError, acid_state
from metastore.errors import MetaError


class LayoutRule(StrEnum):
    """The rule of the directory layout that a finding breaks."""

    MALFORMED_NAME = "malformed name"
    NESTED_DIRECTORY = "nested directory"
    OVERLAPPING_RANGES = "overlapping ranges"
    UNKNOWN_FILE = "unknown file"
    TWO_FILES_FOR_A_BUCKET = "two files for a bucket"
    BUCKET_OUT_OF_RANGE = "bucket out of range"
    EMPTY_DIRECTORY = "empty directory"
    NO_VERSION_FILE = "no version file"
    UNKNOWN_WRITE_ID = "unknown write id"
    ABORTED_WRITER = "orphan of an aborted writer"
    DEAD_STAGING = "orphan of a dead writer"
    UNREGISTERED = "unregistered partition"
    SIDE_FILE = "side file"
    HISTORY = "not enough history"
    ORIGINAL_FILE = "original file"
    STRANDED = "stranded rows"
    UNREADABLE_FILE = "unreadable file"
    WRONG_COLUMNS = "wrong columns"
    OLD_VERSION = "old version"
    WRONG_OPERATION = "wrong operation"
    WRONG_BUCKET = "wrong bucket"
    WRONG_WRITE_ID = "wrong write id"
    UNSORTED = "unsorted file"
    DOUBLED_ROW = "row that stands twice"
    NO_KEY_INDEX = "no key index"
    SHORT_KEY_INDEX = "short key index"
    WRONG_KEY_INDEX = "wrong key index"
    WRONG_STATISTICS = "wrong statistics"
    SHIFTED_VALUES = "shifted values"
    NEGATIVE_FRACTION = "negative fraction"


@dataclass(frozen=True)
class Finding:
    """A violation; ``path`` is relative to the ACID directory."""

    rule: LayoutRule
    path: str
    text: str
    is_unneeded: bool = False


@dataclass(frozen=True)
class Surroundings:
    """The metastore's knowledge of the table."""

    write_ids: ValidWriteIdList
    txns: ValidTxnList
    is_full_acid: bool = True
    bucket_count: int = 0


@dataclass(frozen=True)
class CheckedListing:
    """The result of checking a listing: the findings, and the state for readers (None if the listing gives none)."""

    findings: tuple[Finding, ...]
    state: AcidState | None


def check_listing(
    listing: Iterable[Listed], table: Surroundings, read_metadata: Callable[[str], str | bytes]
) -> CheckedListing:
    """Look through one recursive listing of an ACID directory."""
    entries = list(listing)
    malformed = list(_malformed(entries))
    bad = {finding.path for finding in malformed}
    entries = [entry for entry in entries if entry.path.partition("/")[0] not in bad]
    findings = [*malformed, *_staging(entries, table.txns)]
    try:
        state = acid_state(entries, table.write_ids, table.txns, read_metadata)
    except NotEnoughHistoryError as error:
        return CheckedListing((*findings, Finding(LayoutRule.HISTORY, "", str(error))), None)
    except MetaError as error:
        return CheckedListing((*findings, Finding(LayoutRule.UNREADABLE_FILE, "", str(error))), None)
    findings += [
        Finding(
            LayoutRule.ABORTED_WRITER,
            path,
            "Its transaction was aborted: no reader looks at it, and the Cleaner removes it in time",
            is_unneeded=True,
        )
        for path in state.aborted
    ]
    directories: list[BaseDirectory | DeltaDirectory] = [*([state.base] if state.base else []), *state.deltas]
    for directory in directories:
        findings += _contents(directory, entries, table)
    findings += _overlaps(state)
    findings += _originals(state, table)
    findings += _unknown_write_ids(directories, entries, table.write_ids)
    return CheckedListing(tuple(findings), state)


def _malformed(entries: Iterable[Listed]) -> Iterator[Finding]:
    seen = set()
    for entry in entries:
        name, nested, _ = entry.path.partition("/")
        if name in seen or is_hidden(name) or not (nested or entry.is_dir):
            continue
        seen.add(name)
        try:
            parse_directory(name)
        except MalformedNameError as error:
            yield Finding(LayoutRule.MALFORMED_NAME, name, str(error))


def _staging(entries: Iterable[Listed], txns: ValidTxnList) -> Iterator[Finding]:
    """Yield hidden work of transactions that have ended; ``txns`` must be newer than the listing."""
    names = dict.fromkeys(entry.path.partition("/")[0] for entry in entries)
    for name in names:
        owner = staging_owner(name)
        if owner is not None and (txns.is_valid(owner) or txns.is_aborted(owner)):
            yield Finding(
                LayoutRule.DEAD_STAGING,
                name,
                f"Transaction {owner} has ended and left its staging directory",
                is_unneeded=True,
            )


def _contents(
    directory: BaseDirectory | DeltaDirectory, entries: Sequence[Listed], table: Surroundings
) -> Iterator[Finding]:
    prefix = f"{directory.path}/"
    nested = sorted(
        {
            prefix + entry.path.removeprefix(prefix).partition("/")[0]
            for entry in entries
            if entry.path.startswith(prefix)
            and (entry.is_dir or "/" in entry.path.removeprefix(prefix))
            and not is_hidden(entry.path.removeprefix(prefix))
        }
    )
    for path in nested if table.is_full_acid else ():
        yield Finding(LayoutRule.NESTED_DIRECTORY, path, "Some readers pass over what lies below a base or delta")
    if not directory.files:
        if isinstance(directory, DeltaDirectory):  # A base may say by its marker alone that it is empty.
            yield Finding(
                LayoutRule.EMPTY_DIRECTORY,
                directory.path,
                "It holds no data file, and object stores have no directories without files",
                is_unneeded=True,
            )
        return
    for file in directory.side_files:
        yield Finding(
            LayoutRule.SIDE_FILE,
            file.path,
            "A streaming writer has not closed this file: only its flushed part "
            "counts, and engines that do not know side files fail on it",
        )
    if table.is_full_acid:
        yield from _bucket_files(directory, table.bucket_count)
        if not directory.is_marked and not directory.may_be_raw:
            yield Finding(
                LayoutRule.NO_VERSION_FILE, directory.path, "Readers look at each footer to learn the ACID version"
            )


def _bucket_files(directory: BaseDirectory | DeltaDirectory, bucket_count: int) -> Iterator[Finding]:
    directly = [file.path for file in directory.files if file.path.count("/") == 1]
    names = [(path, parse_file(path.rpartition("/")[2])) for path in directly]
    for path, name in names:
        if name.bucket == NO_BUCKET:
            yield Finding(LayoutRule.UNKNOWN_FILE, path, "Its name is of no known form: some fail, some ignore it")
        elif bucket_count and name.bucket >= bucket_count:
            yield Finding(LayoutRule.BUCKET_OUT_OF_RANGE, path, f"The table has {bucket_count} buckets")
    counts = Counter(name.bucket for _, name in names if not name.is_original and name.bucket != NO_BUCKET)
    for path, name in names:
        if not name.is_original and counts[name.bucket] > 1:
            yield Finding(
                LayoutRule.TWO_FILES_FOR_A_BUCKET,
                path,
                f"Every file of bucket {name.bucket} in one directory is read: rows may come twice",
            )


def _overlaps(state: AcidState) -> Iterator[Finding]:
    for kind in (state.insert_deltas, state.delete_deltas):
        widest: DeltaDirectory | None = None
        same: dict[tuple[int, int, int | None], DeltaDirectory] = {}
        for delta in sorted(kind, key=lambda directory: (directory.name.min_write_id, -directory.name.max_write_id)):
            twin = same.setdefault(delta.name[:3], delta)
            reaches = widest is not None and delta.name.min_write_id <= widest.name.max_write_id
            clash = widest if widest and reaches and not _are_statements(widest.name, delta.name) else twin
            if clash is not delta:
                yield Finding(
                    LayoutRule.OVERLAPPING_RANGES,
                    delta.path,
                    f"It is read beside {clash.path}, and both may hold the same events",
                )
            if widest is None or delta.name.max_write_id > widest.name.max_write_id:
                widest = delta
    yield from _twins(state)
    for delta in state.deltas:
        if state.base and delta.name.min_write_id <= state.base.name.write_id < delta.name.max_write_id:
            yield Finding(
                LayoutRule.OVERLAPPING_RANGES,
                delta.path,
                f"It begins within {state.base.path} and ends behind it: events may be read twice",
            )


def _twins(state: AcidState) -> Iterator[Finding]:
    """Yield leftovers of a second run of a compaction: we read the later run's, and other readers may read both."""
    chosen = {(delta.name[:3], delta.is_delete): delta for delta in state.deltas}
    for path in state.obsolete:
        name = parse_directory(path) if "/" not in path else None
        twin = chosen.get((name[:3], name.is_delete)) if isinstance(name, DeltaName) else None
        if twin is not None:
            yield Finding(
                LayoutRule.OVERLAPPING_RANGES,
                path,
                f"It has the range of {twin.path}, which is read instead; Hive before 4.2 reads both until "
                "the Cleaner has been here",
            )


def _are_statements(name: DeltaName, other: DeltaName) -> bool:
    """Return True if two deltas are two statements of one transaction."""
    same = name.min_write_id == name.max_write_id == other.min_write_id == other.max_write_id
    return same and name.statement_id != other.statement_id


def _originals(state: AcidState, table: Surroundings) -> Iterator[Finding]:
    for file in state.stranded:
        yield Finding(
            LayoutRule.STRANDED,
            file.path,
            "Written past the transactions: it lies beside the base, and no reader shows it",
        )
    for file in state.originals:
        name = file.path.rpartition("/")[2]
        if not file.size:
            continue
        if not table.is_full_acid:
            yield Finding(
                LayoutRule.ORIGINAL_FILE,
                file.path,
                "It lies outside of bases and deltas: readers of insert-only tables do not show it",
            )
        elif parse_file(name).bucket == NO_BUCKET:
            yield Finding(
                LayoutRule.UNKNOWN_FILE,
                file.path,
                "Its name tells no bucket: its rows cannot be updated or deleted, and Trino refuses the table",
            )


def _unknown_write_ids(
    directories: Collection[BaseDirectory | DeltaDirectory], entries: Iterable[Listed], write_ids: ValidWriteIdList
) -> Iterator[Finding]:
    """Yield directories of write ids that are not allocated.

    They would become visible when a transaction gets those ids.
    """
    chosen = {directory.path for directory in directories}
    names = dict.fromkeys(entry.path.partition("/")[0] for entry in entries if "/" in entry.path)
    for name in names:
        parsed = parse_directory(name) if name not in chosen and not is_hidden(name) else None
        if isinstance(parsed, DeltaName) and parsed.min_write_id > write_ids.high_watermark:
            yield Finding(
                LayoutRule.UNKNOWN_WRITE_ID,
                name,
                f"The table's write ids end at {write_ids.high_watermark}: "
                "its rows would appear when later ones are given out",
            )
