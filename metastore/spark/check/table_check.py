"""A check of a table's files; it can move files that nobody needs out of the way.

Rule: the files are listed before the metastore is asked for open transactions, so that a working writer never looks
dead. If listed files disappear meanwhile, as the Cleaner removes them, the directory is looked at again. Only files
that no reader reads are moved, into a hidden directory of the same location; nothing is removed.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from metastore.acid.names import MalformedNameError, is_hidden, parse_directory
from metastore.acid.snapshots import ValidTxnList, ValidWriteIdList, decode_aborted_bits
from metastore.acid.state import AcidState, BaseDirectory, DeltaDirectory
from metastore.acid.table_kinds import is_full_acid, is_transactional
from metastore.acid.violations import CheckedListing, Finding, LayoutRule, Surroundings, check_listing
from metastore.acid_tables.footers import orc_tail
from metastore.client import DomainClient
from metastore.errors import InvalidInputError
from metastore.files import FileEntry, Files
from metastore.ids import TableName
from metastore.partition_names import make_name
from metastore.roots import local_path
from metastore.spark.check.file_check import check_doubles, check_file
from metastore.spark.check.old_files import check_old

QUARANTINE = ".quarantine"
_PAST_TRANSACTIONS = frozenset({LayoutRule.STRANDED, LayoutRule.ORIGINAL_FILE})
"""Files of writers that ignore transactions; no reader shows them."""
_SPARK_FILE = re.compile(r"part-\d+-([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})")
_READERS = 4
_LOOKS = 4
"""The most attempts to list a directory; if its files keep disappearing, the last attempt counts."""


@dataclass(frozen=True)
class CheckedPlace:
    """An ACID directory of the table: the location of a partition, or, with no name, of the table."""

    partition: str
    location: str


@dataclass(frozen=True)
class LocatedFinding:
    """A finding and its place; ``moved_to``: its place in quarantine."""

    place: CheckedPlace
    finding: Finding
    moved_to: str | None = None


def check_table(
    client: DomainClient, files: Files, name: TableName, *, with_files: bool = True
) -> list[LocatedFinding]:
    """Return every violation in the table; without ``with_files`` only those that listings show.

    Raises: InvalidInputError for a table that is not transactional.
    """
    table = client.get_table(name.db, name.table)
    if not is_transactional(table.parameters or {}):
        raise InvalidInputError(f"{name} is not transactional: there are no bases and deltas to check.")
    places, root = _places(client, table), CheckedPlace("", table.sd.location)
    listings = [(place, files.listing(place.location)) for place in places]
    everything = files.listing(root.location) if table.partitionKeys else []
    ask = partial(_surroundings, client, name, table)
    surroundings = ask()

    def look(place: CheckedPlace, entries: list[FileEntry], surroundings: Surroundings) -> list[LocatedFinding]:
        findings = _check_place(files, place, entries, surroundings, with_files=with_files)
        return [LocatedFinding(place, finding) for finding in findings]

    def look_outside(_root: CheckedPlace, entries: list[FileEntry], surroundings: Surroundings) -> list[LocatedFinding]:
        unregistered = _outside(
            entries, root.location, _places(client, table)
        )  # listed last, so that a new partition is not taken for a stranger
        return [
            LocatedFinding(place, finding)
            for place, inside in unregistered.items()
            for finding in _check_outside(files, place, inside, surroundings)
        ]

    result = []
    for place, entries in listings:
        result += _settled(files, place, entries, surroundings, look, ask)
    if everything:
        result += _settled(files, root, everything, surroundings, look_outside, ask)
    return result


def _settled(
    files: Files,
    place: CheckedPlace,
    entries: list[FileEntry],
    surroundings: Surroundings,
    look: Callable[[CheckedPlace, list[FileEntry], Surroundings], list[LocatedFinding]],
    ask: Callable[[], Surroundings],
) -> list[LocatedFinding]:
    """Return the findings of ``look`` in a directory from which no listed file disappeared meanwhile."""
    found = look(place, entries, surroundings)
    for _ in range(_LOOKS - 1):
        if not found:
            break
        now = files.listing(place.location)
        if {entry.path for entry in entries} <= {entry.path for entry in now}:
            break
        entries = now
        found = look(place, entries, ask())
    return found


def _check_place(
    files: Files, place: CheckedPlace, entries: Sequence[FileEntry], surroundings: Surroundings, *, with_files: bool
) -> list[Finding]:
    listed = _check_listing(files, place, entries, surroundings)
    findings = [
        _with_writer(files, place, finding) if with_files and finding.rule in _PAST_TRANSACTIONS else finding
        for finding in listed.findings
    ]
    if with_files and listed.state is not None:
        check = _check_files if surroundings.is_full_acid else _check_rows
        findings += check(files, place.location, listed.state)
    return findings


def quarantine(files: Files, findings: Sequence[LocatedFinding]) -> list[LocatedFinding]:
    """Move unneeded files to ``<location>/.quarantine``; return all findings, with the new places of moved files."""
    return [_moved(files, finding) if finding.finding.is_unneeded else finding for finding in findings]


def repair(files: Files, findings: Sequence[LocatedFinding]) -> list[LocatedFinding]:
    """Move files that were written without a transaction to ``<location>/.quarantine``; return as ``quarantine``."""
    return [_moved(files, finding) if finding.finding.rule in _PAST_TRANSACTIONS else finding for finding in findings]


def _with_writer(files: Files, place: CheckedPlace, finding: Finding) -> Finding:
    """Return the finding with the file's writer: Spark's version and job, and the number of rows."""
    job = _SPARK_FILE.match(finding.path.rpartition("/")[2])
    try:
        tail = orc_tail(files, f"{place.location}/{finding.path}")
    except OSError:  # the file has another format, and the table is insert-only
        writer = f"Spark wrote it in job {job[1]}" if job else "Its writer is not known"
    else:
        by = f"Spark {tail.spark_version}" if tail.is_by_spark else "An unknown writer"
        writer = f"{by} wrote {tail.rows} rows" + (f" in job {job[1]}" if job else "")
    return replace(finding, text=f"{finding.text}. {writer}. --repair moves it out, for its rows to be inserted")


def _moved(files: Files, located: LocatedFinding) -> LocatedFinding:
    target = first = f"{located.place.location}/{QUARANTINE}/{located.finding.path.lstrip('.')}"
    number = 1
    while files.exists(target):
        number += 1
        target = f"{first}.{number}"
    try:
        files.rename(f"{located.place.location}/{located.finding.path}", target)
    except FileNotFoundError:  # the Cleaner has removed the file
        return located
    return replace(located, moved_to=target)


def _places(client: DomainClient, table: Any) -> list[CheckedPlace]:
    if not table.partitionKeys:
        return [CheckedPlace("", table.sd.location)]
    names = client.get_partition_names(table.dbName, table.tableName, -1)
    partitions = [
        partition
        for start in range(0, len(names), 1000)
        for partition in client.get_partitions_by_names(table.dbName, table.tableName, names[start : start + 1000])
    ]
    keys = [key.name for key in table.partitionKeys]
    places = [CheckedPlace(make_name(keys, partition.values), partition.sd.location) for partition in partitions]
    return sorted(places, key=lambda place: place.partition)


def _outside(
    entries: Sequence[FileEntry], root: str, places: Sequence[CheckedPlace]
) -> dict[CheckedPlace, list[FileEntry]]:
    """Return entries of a partitioned table's directory outside all partitions: staging, unregistered partitions."""
    known = {_same(place.location).removeprefix(f"{_same(root)}/") for place in places}
    entries_by_place: dict[CheckedPlace, list[FileEntry]] = {}
    for entry in entries:
        parts = entry.path.split("/")
        depth = next((number for number, part in enumerate(parts) if is_hidden(part) or _is_acid(part)), None)
        if depth is None or any("/".join(parts[:end]) in known for end in range(1, depth + 1)):
            continue
        name = "/".join(parts[:depth])
        place = CheckedPlace(name, f"{root}/{name}" if name else root)
        entries_by_place.setdefault(place, []).append(entry._replace(path="/".join(parts[depth:])))
    return entries_by_place


def _same(location: str) -> str:
    """Return a location in a spelling that can be compared."""
    return str(local_path(location) or location).rstrip("/")


def _is_acid(name: str) -> bool:
    try:
        return parse_directory(name) is not None
    except MalformedNameError:
        return False


def _check_outside(
    files: Files, place: CheckedPlace, entries: Sequence[FileEntry], surroundings: Surroundings
) -> list[Finding]:
    listed = _check_listing(files, place, entries, surroundings)
    orphans = [finding for finding in listed.findings if finding.is_unneeded]
    if listed.state is not None and (listed.state.base or listed.state.deltas):
        orphans.append(
            Finding(
                LayoutRule.UNREGISTERED,
                "",
                "The metastore knows no such partition, so nobody reads it: register it, or move it away",
            )
        )
    return orphans


def _surroundings(client: DomainClient, name: TableName, table: Any) -> Surroundings:
    types = client.types
    open_txns = client.get_open_txns()
    ids = tuple(open_txns.open_txns or ())
    aborted = decode_aborted_bits(ids, open_txns.abortedBits or b"")
    txns = ValidTxnList(open_txns.txn_high_water_mark, open_txns.min_open_txn or None, ids, frozenset(aborted))
    full_name = f"{name.db}.{name.table}"
    [valid] = client.get_valid_write_ids(types.GetValidWriteIdsRequest(fullTableNames=[full_name])).tblValidWriteIds
    invalid = tuple(valid.invalidWriteIds)
    write_ids = ValidWriteIdList(
        full_name,
        valid.writeIdHighWaterMark,
        valid.minOpenWriteId or None,
        invalid,
        frozenset(decode_aborted_bits(invalid, valid.abortedBits or b"")),
    )
    return Surroundings(
        write_ids,
        txns,
        is_full_acid=is_full_acid(table.parameters),
        bucket_count=max(table.sd.numBuckets or 0, 0) if table.sd.bucketCols else 0,
    )


def _check_listing(
    files: Files, place: CheckedPlace, entries: Sequence[FileEntry], surroundings: Surroundings
) -> CheckedListing:
    kept = [entry for entry in entries if entry.path.partition("/")[0] != QUARANTINE]
    try:
        return check_listing(kept, surroundings, lambda path: files.read(f"{place.location}/{path}"))
    except OSError as error:
        return CheckedListing((Finding(LayoutRule.UNREADABLE_FILE, "", str(error)),), None)


def _check_rows(files: Files, location: str, state: AcidState) -> Iterator[Finding]:
    """Check the files of an insert-only table that are ORC."""
    for directory in [*([state.base] if state.base else []), *state.deltas]:
        for file in directory.files:
            with suppress(OSError):  # the file has another format
                yield from check_old(files, location, file.path)


def _check_files(files: Files, location: str, state: AcidState) -> Iterator[Finding]:
    directories: list[BaseDirectory | DeltaDirectory] = [*([state.base] if state.base else []), *state.deltas]
    for directory in directories:
        cut = {file.path for file in directory.side_files}
        paths = [
            file.path
            for file in directory.bucket_files or directory.files
            if file.size and f"{file.path}_flush_length" not in cut
        ]
        with ThreadPoolExecutor(_READERS) as pool:
            for findings in pool.map(partial(check_file, files, location, directory=directory), paths):
                yield from findings
    yield from check_doubles(
        files,
        location,
        [directory for directory in directories if isinstance(directory, BaseDirectory) or not directory.is_delete],
    )
