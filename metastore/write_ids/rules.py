"""Decisions about write ids: the ids that a reader may not see, and the ids that a batch of allocations gets.

Rules: an id that no transaction owns any more counts as committed (WID-6); ids of a table are allocated without holes,
in the order of the transactions' ids within a call.
"""

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from itertools import compress, filterfalse
from typing import NamedTuple

from metastore.acid.snapshots import ValidTxnList, ValidWriteIdList
from metastore.errors import InvalidRequestError, NoSuchTxnError, TxnAbortedError
from metastore.ids import TableName
from metastore.txns.core.rules import LARGEST_ID, TxnRecord, TxnType, required_open


class TableWriteIds(NamedTuple):
    """The stored state of a table that decides a reader's list.

    ``next_write_id`` is 0 for a table that never had a write id. ``mapped`` is the highest id that a transaction up to
    the reader's mark owns (0: none), ``purged`` the highest whose owner is forgotten. ``invalid``: (write id,
    transaction), ascending, of at least every owned id up to the high-water mark whose owner is not valid. ``owned``
    counts the owned ids up to ``mapped`` (at most 1 more than ``invalid`` has), None if ``mapped`` itself is valid.
    """

    next_write_id: int = 0
    purged: int = 0
    mapped: int = 0
    invalid: Sequence[tuple[int, int]] = ()
    owned: int | None = None


def high_watermark(table: TableWriteIds) -> int:
    """Return the write id up to which a reader knows the table."""
    return max(table.mapped, table.purged) if table.mapped else max(table.next_write_id - 1, 0)


def valid_write_ids(name: str, table: TableWriteIds, txns: ValidTxnList) -> ValidWriteIdList:
    """Return the list of a reader with this transaction snapshot.

    If the reader can see no id behind the first invalid one, the list is cut there: the shorter list is equivalent.
    """
    mark = high_watermark(table)
    if not table.invalid:  # This is nearly always so: readers ask before each statement.
        return ValidWriteIdList(name, mark)
    write_ids, txn_ids = zip(*table.invalid, strict=True)
    owners = txns.hidden(txn_ids)
    known = write_ids[: bisect_right(write_ids, mark)]
    invalid = tuple(compress(known, map(owners.__contains__, txn_ids)))
    aborted = frozenset(compress(known, map(owners.intersection(txns.aborted).__contains__, txn_ids)))
    min_open = next(filterfalse(aborted.__contains__, invalid), None)
    all_hidden = table.owned is not None and table.owned == bisect_right(invalid, table.mapped)
    if invalid and (all_hidden or not table.mapped) and table.purged < invalid[0]:
        return ValidWriteIdList(name, invalid[0], min_open, invalid[:1], aborted & {invalid[0]})
    return ValidWriteIdList(name, mark, min_open, invalid, aborted)


class Allocation(NamedTuple):
    """One request for write ids of a table; ``reallocate`` asks for new ids in place of those allocated before."""

    name: TableName
    txn_ids: tuple[int, ...]
    reallocate: bool = False


def uncontended(requests: Sequence[Allocation]) -> list[tuple[int, TableName]]:
    """Return the requested (transaction, table) pairs in the order of allocation; nothing if a pair occurs twice."""
    wanted = [(txn_id, request.name) for request in requests for txn_id in sorted(request.txn_ids)]
    again = any(request.reallocate for request in requests) or len(set(wanted)) < len(wanted)
    return [] if again else wanted


class AllocationPlan(NamedTuple):
    """The plan of an allocation.

    It holds dropped and new (transaction, table, write id), the tables' next ids, and the answers.
    """

    dropped: list[tuple[int, TableName]]
    allocated: dict[tuple[int, TableName], int]
    next_write_ids: dict[TableName, int]
    answers: list[dict[int, int] | Exception]


def plan_allocations(
    requests: Sequence[Allocation],
    txns: Mapping[int, TxnRecord],
    owned: Mapping[tuple[int, TableName], int],
    next_ids: Mapping[TableName, int],
) -> AllocationPlan:
    """Serve requests in order: existing ids are repeated, missing ids are new, a bad request gets nothing."""
    plan = AllocationPlan([], {}, dict(next_ids), [])
    current = dict(owned)
    for request in requests:
        txn_ids = sorted(set(request.txn_ids))
        refusal = first_refusal(txn_ids, txns)
        if refusal is not None:
            plan.answers.append(refusal)
            continue
        answer: dict[int, int] = {}
        for txn_id in txn_ids:
            key = (txn_id, request.name)
            if key in current and request.reallocate:
                plan.dropped.append(key)
                del current[key]
            if key not in current:
                current[key] = plan.allocated[key] = plan.next_write_ids[request.name]
                plan.next_write_ids[request.name] += 1
            answer[txn_id] = current[key]
        plan.answers.append(answer)
    return plan


def first_refusal(
    txn_ids: Iterable[int], txns: Mapping[int, TxnRecord]
) -> NoSuchTxnError | TxnAbortedError | InvalidRequestError | None:
    """Return why the transactions cannot get write ids; None if all can."""
    for txn_id in txn_ids:
        record = txns.get(txn_id)
        refusal = required_open(txn_id, record.state if record else None)
        if refusal is not None:
            return refusal
        if record is not None and record.txn_type is TxnType.READ_ONLY:
            return InvalidRequestError(f"Transaction txnid:{txn_id} is read-only: it cannot get a write id")
    return None


def check_replayed(owners: Sequence[tuple[int, int]]) -> None:
    """Require that (source transaction, write id) can be the answer to an allocation of a source warehouse.

    Raises: InvalidRequestError.
    """
    write_ids = [write_id for _, write_id in owners]
    if (
        not owners
        or not 0 < write_ids[0] <= LARGEST_ID
        or write_ids != list(range(write_ids[0], write_ids[0] + len(owners)))
    ):
        raise InvalidRequestError("srcTxnToWriteIdList must hold consecutive write ids from 1 on, ascending")
    if len({source for source, _ in owners}) < len(owners):
        raise InvalidRequestError("srcTxnToWriteIdList names a transaction twice")
