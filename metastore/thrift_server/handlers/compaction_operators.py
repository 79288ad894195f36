"""Our own calls about compactions, for operators: decode, ask the service, encode."""

from __future__ import annotations

from datetime import datetime, timedelta

from metastore.compaction.explaining.rules import Holder, Reason
from metastore.compaction.explaining.service import Examined, ExplainingService
from metastore.compaction.measuring.rules import DeltasOf
from metastore.compaction.measuring.service import MeasuringService
from metastore.errors import InvalidRequestError
from metastore.thrift_gen.operators import ttypes
from metastore.thrift_server.convert import compaction as convert
from metastore.thrift_server.convert.catalog import required_struct
from metastore.thrift_server.dispatch.call import Call

_PARTITIONS, _MOST_PARTITIONS, _MOST_TABLES = 100, 1000, 10_000


class CompactionOperatorHandlers:
    """The reasons why nothing is compacted or cleaned, and the tables with the highest read cost."""

    def __init__(self, explaining: ExplainingService, measuring: MeasuringService) -> None:
        """Prepare the handlers. ``explaining`` and ``measuring`` have the answers."""
        self._explaining = explaining
        self._measuring = measuring

    def metastore_compaction_examine(
        self, call: Call, question: ttypes.CompactionQuestion
    ) -> ttypes.CompactionExamination:
        """Return the plan of a compaction, the reasons why none is done, and why old files are still there."""
        wanted = required_struct(question, "CompactionQuestion")
        entity = convert.entity(wanted.dbname, wanted.tablename, wanted.partitionname, wanted.catName)
        call.log(entity=str(entity))
        examination = self._explaining.examine(entity.table, entity.partition, _limit(wanted.limit))
        return ttypes.CompactionExamination(
            entities=[_examined(each, with_files=bool(wanted.withFiles)) for each in examination.entities],
            leftOut=examination.left_out,
        )

    def metastore_table_top(self, _call: Call, limit: int | None) -> list[ttypes.ReadCost]:
        """Return the tables and partitions whose deltas cost readers most."""
        if limit is None or not 0 < limit <= _MOST_TABLES:
            raise InvalidRequestError(f"limit is {limit}: say from 1 to {_MOST_TABLES}")
        return [_read_cost(each) for each in self._measuring.costliest(limit)]


def _limit(wanted: int | None) -> int:
    return min(max(1, wanted or _PARTITIONS), _MOST_PARTITIONS)


def _examined(each: Examined, *, with_files: bool) -> ttypes.CompactionExamined:
    return ttypes.CompactionExamined(
        partitionname=each.entity.partition or None,
        type=each.plan.type.value if each.plan.type else None,
        reason=each.plan.reason,
        inputs=[
            ttypes.CompactionInput(
                path=source.path,
                kind=source.kind,
                files=len(source.files),
                bytes=source.size,
                uris=[f"{each.location}/{path}" for path in source.files] if with_files else None,
            )
            for source in each.plan.inputs
        ],
        thresholds=[
            ttypes.CompactionThreshold(
                name=gauge.name, measured=gauge.measured, limit=gauge.limit, exceeded=gauge.is_exceeded
            )
            for gauge in each.plan.gauges
        ],
        readBytes=each.plan.reads,
        takesMs=_duration(each.takes),
        takesBy=each.takes_by,
        compaction=_reason(each.compaction),
        cleanings=[_reason(reason) for reason in each.cleanings],
        heldBytes=each.held,
        delays=[_holder(holder) for holder in each.delays],
    )


def _read_cost(each: DeltasOf) -> ttypes.ReadCost:
    catalog, db, table = each.entity.table
    return ttypes.ReadCost(
        catName=catalog,
        dbname=db,
        tablename=table,
        partitionname=each.entity.partition or None,
        deltas=each.deltas.deltas,
        files=each.deltas.files,
        bytes=each.deltas.size,
        obsoleteDeltas=each.deltas.obsolete_deltas,
        score=each.deltas.score,
        usualScore=each.usual,
        obsoleteBytes=each.deltas.obsolete_size,
    )


def _reason(reason: Reason) -> ttypes.CompactionReason:
    return ttypes.CompactionReason(
        text=reason.text,
        since=_millis(reason.since),
        holders=[_holder(holder) for holder in reason.holders],
        endsWith=reason.ends_with or None,
    )


def _holder(holder: Holder) -> ttypes.CompactionHolder:
    return ttypes.CompactionHolder(
        txnid=holder.txn.id,
        user=holder.txn.user,
        hostname=holder.txn.host,
        agentInfo=holder.agent_info,
        startedAt=_millis(holder.started_at),
        lastHeartbeatAt=_millis(holder.last_heartbeat_at),
        writeId=holder.write_id,
        endsWith=holder.ends_with,
    )


def _millis(at: datetime | None) -> int | None:
    return None if at is None else int(at.timestamp() * 1000)


def _duration(length: timedelta | None) -> int | None:
    return None if length is None else int(length.total_seconds() * 1000)
