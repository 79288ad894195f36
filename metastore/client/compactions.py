"""Queries about compactions, for readers, for compaction jobs and for their requesters."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from threading import Event
from time import monotonic

from metastore.client.client import MetastoreClient
from metastore.compaction.queue.rules.requests import CompactionState, CompactionType
from metastore.errors import ClaimLostError, InvalidInputError, NoSuchObjectError
from metastore.ids import TableName
from metastore.partition_names import canonical
from metastore.thrift_gen.hive_metastore import ttypes

PENDING = frozenset({CompactionState.INITIATED.display, CompactionState.WORKING.display})
DONE = frozenset({CompactionState.READY_FOR_CLEANING.display, CompactionState.SUCCEEDED.display})
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.1, 2.0
UNTAKEN_S = 30.0
"""The time after which a waiting user is told that no Worker has taken the compaction."""


def require_claim(client: MetastoreClient, compaction_id: int, txn_id: int) -> None:
    """Check that a compaction still belongs to the attempt with this transaction: open, and its claim held.

    Raises: TxnAbortedError, NoSuchTxnError, ClaimLostError, MetastoreUnreachableError.
    """
    client.heartbeat(ttypes.HeartbeatRequest(txnid=txn_id))
    shown = client.show_compact(ttypes.ShowCompactRequest(id=compaction_id)).compacts
    if not any(row.state == CompactionState.WORKING.display and row.txnId == txn_id for row in shown):
        raise ClaimLostError(
            f"Compaction {compaction_id} does not belong to transaction {txn_id} any more: what its "
            "job has written is not published"
        )


def compaction_type(word: str) -> int:
    """Return the number of a kind of compaction, from the word that a user writes. Raises: InvalidInputError."""
    try:
        return CompactionType(word.lower()).number
    except ValueError:
        raise InvalidInputError(
            f"'{word}' is not a kind of compaction: the kinds are 'minor', 'major' and 'rebalance'."
        ) from None


def requested(
    client: MetastoreClient, request: ttypes.CompactionRequest, first_id: int
) -> list[ttypes.ShowCompactResponseElement]:
    """Return the compactions that were queued for a request, in the order of their ids.

    A request for a partitioned table becomes a request for each partition, with ids from the first on.
    """
    wanted = ttypes.ShowCompactRequest(
        dbName=request.dbname, tbName=request.tablename, partName=request.partitionname, limit=-1
    )
    rows = [row for row in client.show_compact(wanted).compacts if row.id >= first_id]
    return sorted(rows, key=lambda row: int(row.id))


def wait_until_done(
    client: MetastoreClient,
    request: ttypes.CompactionRequest,
    first_id: int,
    progress: Callable[[list[ttypes.ShowCompactResponseElement]], None] = lambda _: None,
) -> list[ttypes.ShowCompactResponseElement]:
    """Wait until no compaction of a request waits or runs; return them as ``requested``.

    ``progress``: called at each look.
    Raises: NoSuchObjectError if none of them is listed any more.
    """
    pause, seconds = Event(), _FIRST_PAUSE_S
    while True:
        rows = requested(client, request, first_id)
        if not rows:
            raise NoSuchObjectError(
                f"Compaction {first_id} of {request.dbname}.{request.tablename} is not there any more: the table was "
                "dropped or renamed meanwhile. `metastore show compactions` shows what there is."
            )
        progress(rows)
        if not any(row.state in PENDING for row in rows):
            return rows
        pause.wait(seconds)
        seconds = min(2 * seconds, _LONGEST_PAUSE_S)


class Progress:
    """A reporter of the state that each awaited compaction has reached, and once of a lack of Workers."""

    def __init__(self, say: Callable[[str], None]) -> None:
        """Prepare a reporter; ``say``: gets each sentence."""
        self._say = say
        self._states: dict[int, str] = {}
        self._jobs: dict[int, str] = {}
        self._untaken: set[int] = set()
        self._began_at = monotonic()

    def note(self, rows: Iterable[ttypes.ShowCompactResponseElement]) -> None:
        """Report the news of a look."""
        for row in rows:
            if self._states.get(row.id) != row.state:
                self._states[row.id] = row.state
                of = f"{row.dbname}.{row.tablename}{f'/{row.partitionname}' if row.partitionname else ''}"
                reason = f": {row.errorMessage}" if row.errorMessage else ""
                self._say(f"Compaction {row.id} of {of} is {row.state}{reason}.")
            if row.state in PENDING and row.metaInfo and self._jobs.get(row.id) != row.metaInfo:
                self._jobs[row.id] = row.metaInfo
                self._say(f"Compaction {row.id}, job {row.hadoopJobId}: {row.metaInfo}.")
            is_untaken = row.state == CompactionState.INITIATED.display and monotonic() - self._began_at > UNTAKEN_S
            if is_untaken and row.id not in self._untaken:
                self._untaken.add(row.id)
                self._say(
                    f"No Worker of pool {row.poolName or 'default'} has taken compaction {row.id} for {UNTAKEN_S:g} s. "
                    "Start a `metastore worker` that serves it, or more of them. "
                    "It stays in the queue when you stop waiting."
                )


def cleaned_write_ids(client: MetastoreClient, name: TableName) -> dict[str, int]:
    """Return by partition name ("": none) the write id up to which the Cleaner may have removed replaced files."""
    cleaned: dict[str, int] = {}
    for row in _of_table(client, name):
        if row.state == CompactionState.SUCCEEDED.display or _is_begun(row):
            partition = canonical(row.partitionname or "")
            cleaned[partition] = max(cleaned.get(partition, 0), row.hightestWriteId or 0)
    return cleaned


def untouched_compactions(client: MetastoreClient, name: TableName) -> dict[int, int]:
    """Return the highest write ids of compactions whose replaced files are all still there, by their transactions."""
    return {row.txnId: row.hightestWriteId for row in _of_table(client, name) if _is_untouched(row) and row.txnId}


def _of_table(client: MetastoreClient, name: TableName) -> Iterator[ttypes.ShowCompactResponseElement]:
    shown = client.show_compact(client.types.ShowCompactRequest(dbName=name.db, tbName=name.table)).compacts
    return (row for row in shown if (row.dbname, row.tablename) == (name.db, name.table))


def _is_untouched(row: ttypes.ShowCompactResponseElement) -> bool:
    """Return True if the Cleaner has yet to begin."""
    return row.state == CompactionState.READY_FOR_CLEANING.display and not _is_begun(row)


def _is_begun(row: ttypes.ShowCompactResponseElement) -> bool:
    """Return True if the Cleaner has started on this compaction, successfully or not; before, no file is gone."""
    return (row.cleanerStart or 0) > 0
