"""Decisions about directories from a time that a restored database does not know (ADR 0049).

Rules: a write id that the database does not know to be finished is void: readers skip its directories. An unknown
compaction is void as well while all its sources are still there; if its sources are gone it is the only copy of
committed rows, and stays readable.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from metastore.acid.names import BaseName, DirectoryName
from metastore.errors import InvalidInputError

TXN_GAP = 1_000_000_000
"""Transactions, locks, compactions, events and objects that may have been made since: a day at 10,000 a second."""
WRITE_ID_GAP = 1000
"""Write ids of a table of which no directory tells: their writers had not published anything yet."""
MOST_VOID = 1_000_000
"""Void write ids of a table; each is a row, and stands in the lists of its readers."""


class RestoredDirectory(NamedTuple):
    """A base or delta, the partition that it is in, and its path."""

    partition: str
    path: str
    name: DirectoryName


class Void(NamedTuple):
    """A write id whose commit is lost or in doubt, and the partition that has its directory."""

    write_id: int
    partition: str


class VoidResult(NamedTuple):
    """The transaction of a compaction, and the partition and highest write id of its output."""

    txn_id: int
    partition: str
    write_id: int


@dataclass(frozen=True)
class Known:
    """The restored database's knowledge of a table.

    ``in_doubt``: write ids of the transactions that were open (``open_txns``). ``aborted_txns``: transactions whose
    directories no reader reads. ``required``: per partition, write ids that must have a readable directory: those of
    committed writes, and the highest of each compaction.
    """

    next_write_id: int
    next_txn_id: int
    in_doubt: Collection[int] = frozenset()
    open_txns: Collection[int] = frozenset()
    aborted_txns: Collection[int] = frozenset()
    required: Mapping[str, Collection[int]] = field(default_factory=dict)


@dataclass
class RecoveryVerdict:
    """The record to write for a table, and the ``hidden`` and ``kept`` directories to report.

    ``void`` write ids have no owner yet, those ``in_doubt`` have an owner that is to be aborted.
    """

    highest: int = 0
    void: set[Void] = field(default_factory=set)
    in_doubt: set[Void] = field(default_factory=set)
    void_results: set[VoidResult] = field(default_factory=set)
    finished: set[int] = field(default_factory=set)
    hidden: list[RestoredDirectory] = field(default_factory=list)
    kept: list[RestoredDirectory] = field(default_factory=list)


def verdict(directories: Iterable[RestoredDirectory], known: Known) -> RecoveryVerdict:
    """Decide what the directories of a table mean. Raises: InvalidInputError for a name with too many ids."""
    result = RecoveryVerdict()
    results, sources = [], []
    for directory in directories:
        first, last = span(directory.name)
        result.highest = max(result.highest, last)
        if directory.name.visibility_txn_id in known.aborted_txns:
            continue
        if _is_unknown_result(directory.name, known):
            results.append(directory)
        elif directory.name.visibility_txn_id or not _lost(directory, known):
            sources.append(directory)
        else:
            result.hidden.append(directory)
            result.void |= {Void(write_id, directory.partition) for write_id in _new_ids(directory, first, last, known)}
            result.in_doubt |= {
                Void(write_id, directory.partition) for write_id in known.in_doubt if first <= write_id <= last
            }
    for directory in sorted(results, key=lambda result: result.name.visibility_txn_id):
        txn_id, last = directory.name.visibility_txn_id, span(directory.name)[1]
        if _has_sources(directory, sources, known.required.get(directory.partition, ())):
            result.void_results.add(VoidResult(txn_id, directory.partition, last))
            result.hidden.append(directory)
            continue
        result.finished.add(txn_id)
        if _lost(directory, known):
            result.kept.append(directory)
        else:
            sources.append(directory)
    return result


def span(name: DirectoryName) -> tuple[int, int]:
    """Return the first and the last write id that may be in a directory."""
    if isinstance(name, BaseName):
        return (0, name.write_id) if name.visibility_txn_id else (name.write_id, name.write_id)
    return name.min_write_id, name.max_write_id


def _new_ids(directory: RestoredDirectory, first: int, last: int, known: Known) -> range:
    ids = range(max(first, known.next_write_id), last + 1)
    if len(ids) > MOST_VOID:
        raise InvalidInputError(
            f"{directory.path} names {len(ids)} write ids that the restored database does not know. Move "
            "it away if no transaction wrote it, then try again."
        )
    return ids


def _is_unknown_result(name: DirectoryName, known: Known) -> bool:
    txn_id = name.visibility_txn_id
    return txn_id >= known.next_txn_id or txn_id in known.open_txns


def _lost(directory: RestoredDirectory, known: Known) -> bool:
    """Return True if the directory has rows of a write that is not committed in the restored database."""
    first, last = span(directory.name)
    return last >= known.next_write_id or any(first <= write_id <= last for write_id in known.in_doubt)


def _has_sources(result: RestoredDirectory, sources: Iterable[RestoredDirectory], required: Collection[int]) -> bool:
    """Return True if all sources of a compaction's result can be read without it."""
    first, last = span(result.name)
    spans = [span(source.name) for source in sources if source.partition == result.partition]
    within = [write_id for write_id in required if first <= write_id <= last]
    if within:
        return all(any(low <= write_id <= high for low, high in spans) for write_id in within)
    return any(low <= last and first <= high for low, high in spans)
