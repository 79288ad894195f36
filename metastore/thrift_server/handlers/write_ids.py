"""The write-id calls: decode, ask the service, encode."""

from __future__ import annotations

from datetime import UTC, datetime

from metastore.acid.snapshots import ValidWriteIdList, ids_in_ranges
from metastore.errors import ConflictRetryError, InvalidRequestError, MetastoreError
from metastore.ids import full_table_name, table_name
from metastore.thrift_gen.hive_metastore import ttypes
from metastore.thrift_gen.operators.ttypes import ReadRequest, ReadSnapshot
from metastore.thrift_server.dispatch.call import Call, coalesced
from metastore.thrift_server.handlers.txns import named_table, owner_text, served
from metastore.txns.core.rules import encode_bits
from metastore.write_ids.rules import Allocation
from metastore.write_ids.service import Reading, ReplayedAllocation, ReplicatedState, WriteIdService

MOST_ON_LOOP = 10_000
"""Ids that the ranges of a list may stand for where its readers are served together; each costs the loop some time.
Without ranges a list that long comes in a large message anyway."""


def _stands_for_many(call: Call) -> bool:
    text: str | None = call.args[0].validTxnList
    return text is not None and "-" in text and ids_in_ranges(text) > MOST_ON_LOOP


class WriteIdHandlers:
    """The calls allocate_table_write_ids, get_valid_write_ids and related ones."""

    def __init__(self, write_ids: WriteIdService) -> None:
        """Prepare the handlers. ``write_ids`` does the work."""
        self.write_ids = write_ids

    @coalesced("allocate_table_write_ids")
    def allocate_table_write_ids(self, calls: list[Call]) -> list[ttypes.AllocateTableWriteIdsResponse | Exception]:
        """Give transactions their write ids for a table."""
        plain = [call for call in calls if call.args[0].replPolicy is None]
        answers = iter(served(plain, _allocation, self.write_ids.allocate_table_write_ids))
        return [
            _allocated(next(answers)) if call.args[0].replPolicy is None else self._replayed(call) for call in calls
        ]

    @coalesced("get_valid_write_ids", apart=_stands_for_many)
    def get_valid_write_ids(self, calls: list[Call]) -> list[ttypes.GetValidWriteIdsResponse | Exception]:
        """Return the visible write ids of each table.

        Readers of the same tables with the same snapshot share an answer.
        """
        return served(calls, _reading, self._readings)

    def get_max_allocated_table_write_id(
        self, _call: Call, rqst: ttypes.MaxAllocatedTableWriteIdRequest
    ) -> ttypes.MaxAllocatedTableWriteIdResponse:
        """Return the highest write id allocated for a table."""
        name = named_table(rqst.dbName, rqst.tableName)
        return ttypes.MaxAllocatedTableWriteIdResponse(self.write_ids.get_max_allocated_table_write_id(name))

    def metastore_valid_write_ids_at(
        self, call: Call, catalog: str | None, db: str | None, table: str | None, at: int | None
    ) -> ttypes.TableValidWriteIds:
        """Return the write ids committed to a table at an instant."""
        if not db or not table or at is None:
            raise InvalidRequestError("The request needs the name of a database and of a table, and an instant")
        call.log(table=f"{db}.{table}")
        try:
            instant = datetime.fromtimestamp(at / 1000, UTC)
        except (ValueError, OverflowError, OSError) as error:
            raise InvalidRequestError(f"{at} ms since 1970 is no instant") from error
        return _valid(self.write_ids.valid_write_ids_at(table_name(db, table, catalog), instant))

    def add_write_ids_to_min_history(self, call: Call, txn_id: int, write_ids: dict[str, int]) -> None:
        """Record the tables that a transaction reads (WID-14)."""
        call.log(txn_id=txn_id)
        self.write_ids.add_write_ids_to_min_history(txn_id, {full_table_name(name) for name in write_ids or {}})

    def metastore_read_snapshot(self, call: Call, request: ReadRequest) -> ReadSnapshot:
        """Return the snapshot and write ids of a transaction that declares the tables that it reads."""
        call.log(txn_id=request.txnid)
        txns, known = self.write_ids.read_snapshot(request.txnid, request.fullTableNames, request.validTxnList)
        return ReadSnapshot(txns.format(), [_valid(write_ids) for write_ids in known])

    def seed_write_id(self, _call: Call, rqst: ttypes.SeedTableWriteIdsRequest) -> None:
        """Let the write ids of a table without any begin behind an id."""
        self.write_ids.seed_write_id(named_table(rqst.dbName, rqst.tableName), rqst.seedWriteId)

    def repl_tbl_writeid_state(self, call: Call, rqst: ttypes.ReplTblWriteIdStateRequest) -> None:
        """Take over the aborted write ids of a replicated table."""
        call.log(table=f"{rqst.dbName}.{rqst.tableName}")
        self.write_ids.repl_tbl_writeid_state(
            ReplicatedState(
                named_table(rqst.dbName, rqst.tableName),
                rqst.validWriteIdlist,
                owner_text("user", rqst.user),
                owner_text("hostName", rqst.hostName),
                tuple(rqst.partNames or ()),
            )
        )

    def _readings(self, readings: list[Reading]) -> list[ttypes.GetValidWriteIdsResponse | MetastoreError]:
        distinct = list(dict.fromkeys(readings))
        answers = {
            reading: answer
            if isinstance(answer, MetastoreError)
            else ttypes.GetValidWriteIdsResponse(tblValidWriteIds=[_valid(known) for known in answer])
            for reading, answer in zip(distinct, self.write_ids.get_valid_write_ids(distinct), strict=True)
        }
        return [answers[reading] for reading in readings]

    def _replayed(self, call: Call) -> ttypes.AllocateTableWriteIdsResponse | Exception:
        sent: ttypes.AllocateTableWriteIdsRequest = call.args[0]
        owners = tuple((pair.txnId, pair.writeId) for pair in sent.srcTxnToWriteIdList or ())
        try:
            return _allocated(
                self.write_ids.allocate_replayed(
                    ReplayedAllocation(named_table(sent.dbName, sent.tableName), sent.replPolicy, owners)
                )
            )
        except ConflictRetryError:
            raise
        except MetastoreError as error:
            return error


def _reading(call: Call) -> Reading:
    sent: ttypes.GetValidWriteIdsRequest = call.args[0]
    return Reading(tuple(sent.fullTableNames or ()), sent.validTxnList, sent.writeId)


def _allocation(call: Call) -> Allocation:
    sent: ttypes.AllocateTableWriteIdsRequest = call.args[0]
    call.log(table=f"{sent.dbName}.{sent.tableName}", txn_ids=sent.txnIds)
    return Allocation(named_table(sent.dbName, sent.tableName), tuple(sent.txnIds or ()), bool(sent.reallocate))


def _allocated(answer: dict[int, int] | Exception) -> ttypes.AllocateTableWriteIdsResponse | Exception:
    if isinstance(answer, Exception):
        return answer
    return ttypes.AllocateTableWriteIdsResponse(
        txnToWriteIds=[ttypes.TxnToWriteId(txn_id, write_id) for txn_id, write_id in sorted(answer.items())]
    )


def _valid(write_ids: ValidWriteIdList) -> ttypes.TableValidWriteIds:
    bits = encode_bits(bytes(map(write_ids.aborted.__contains__, write_ids.invalid)))
    return ttypes.TableValidWriteIds(
        fullTableName=write_ids.table,
        writeIdHighWaterMark=write_ids.high_watermark,
        invalidWriteIds=list(write_ids.invalid),
        minOpenWriteId=write_ids.min_open_write_id,
        abortedBits=bits,
    )
