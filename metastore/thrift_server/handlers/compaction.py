"""The compaction RPCs: decode, call, encode. ``convert_compaction`` holds the conversions."""

from __future__ import annotations

from metastore.compaction.measuring.service import MeasuringService
from metastore.compaction.queue.rules.requests import Compaction, CompactionState
from metastore.compaction.queue.service import CompactionService
from metastore.errors import InvalidRequestError, MetaError
from metastore.ids import table_name
from metastore.thrift_gen.hive_metastore import ttypes
from metastore.thrift_server.convert import compaction as convert
from metastore.thrift_server.convert.catalog import required_struct
from metastore.thrift_server.dispatch.call import Call
from metastore.thrift_server.responses.shared_lists import SharedLists
from metastore.thrift_server.responses.streamed import InPieces


class CompactionHandlers:
    """Thrift's side of the compaction queue."""

    def __init__(self, compaction: CompactionService, measuring: MeasuringService) -> None:
        """Prepare the handlers. ``compaction``: does the work; ``measuring``: keeps numbers of deltas."""
        self._compaction = compaction
        self._measuring = measuring
        self._lists = SharedLists(ttypes.ShowCompactResponseElement)

    def compact(self, call: Call, rqst: ttypes.CompactionRequest) -> None:
        """Queue a compaction, without an answer (Hive 2.3)."""
        self.compact2(call, rqst)

    def compact2(self, call: Call, rqst: ttypes.CompactionRequest) -> ttypes.CompactionResponse:
        """Queue a compaction."""
        result = self._compaction.compact2(convert.new_request(rqst, call.connection.peer))
        call.log(compaction_id=result.id, accepted=result.accepted)
        return convert.compaction_response(result, newer_client=convert.is_newer_client(rqst))

    def show_compact(self, _call: Call, rqst: ttypes.ShowCompactRequest) -> InPieces:
        """List the queue and the history; equal questions at the same time share a reading."""
        wanted, is_old = convert.show_filter(rqst), convert.may_be_old_client(rqst)
        return self._lists.answer(
            (wanted, is_old),
            lambda: (ttypes.ShowCompactResponse, self._compaction.show_compact(wanted, is_old_client=is_old)),
        )

    def find_next_compact(self, call: Call, workerId: str) -> ttypes.OptionalCompactionInfoStruct:
        """Claim the next request (deprecated form)."""
        return self.find_next_compact2(call, ttypes.FindNextCompactRequest(workerId=workerId))

    def find_next_compact2(
        self, call: Call, rqst: ttypes.FindNextCompactRequest | None
    ) -> ttypes.OptionalCompactionInfoStruct:
        """Claim the next request."""
        if rqst is None or not rqst.workerId:
            raise InvalidRequestError("FindNextCompactRequest with a workerId is needed to claim a compaction")
        request = self._compaction.find_next_compact2(rqst.workerId, rqst.workerVersion, rqst.poolName)
        if request is None:
            return ttypes.OptionalCompactionInfoStruct()
        call.log(compaction_id=request.id, worker_id=rqst.workerId)
        return ttypes.OptionalCompactionInfoStruct(ci=convert.info(request))

    def update_compactor_state(self, call: Call, cr: ttypes.CompactionInfoStruct, txn_id: int) -> None:
        """Record the snapshot and the transaction of a running compaction."""
        call.log(compaction_id=required_struct(cr, "CompactionInfoStruct").id, txn_id=txn_id)
        self._compaction.update_compactor_state(convert.claim(cr), cr.highestWriteId, cr.runas, txn_id)

    def find_columns_with_stats(self, _call: Call, cr: ttypes.CompactionInfoStruct) -> list[str]:
        """Name the columns that have statistics."""
        required_struct(cr, "CompactionInfoStruct")
        return self._compaction.find_columns_with_stats(convert.entity(cr.dbname, cr.tablename, cr.partitionname))

    def update_compaction_metrics_data(self, _call: Call, data: ttypes.CompactionMetricsDataStruct) -> bool:
        """Record a number of deltas.

        Return True, since no version of Hive's is lost here and the last report counts.
        """
        counted = convert.counted(required_struct(data, "CompactionMetricsDataStruct").type)
        entity = convert.entity(data.dbname, data.tblname, data.partitionname)
        self._measuring.update(entity, counted, data.metricvalue or 0, data.threshold or 0)
        return True

    def remove_compaction_metrics_data(self, _call: Call, request: ttypes.CompactionMetricsDataRequest) -> None:
        """Forget a number of deltas."""
        counted = convert.counted(required_struct(request, "CompactionMetricsDataRequest").type)
        self._measuring.remove(convert.entity(request.dbName, request.tblName, request.partitionName), counted)

    def mark_compacted(self, call: Call, cr: ttypes.CompactionInfoStruct) -> None:
        """Move a running compaction to "ready for cleaning"."""
        call.log(compaction_id=required_struct(cr, "CompactionInfoStruct").id)
        self._compaction.mark_compacted(convert.claim(cr))

    def mark_cleaned(self, call: Call, cr: ttypes.CompactionInfoStruct) -> None:
        """End a compaction that had no work."""
        call.log(compaction_id=required_struct(cr, "CompactionInfoStruct").id)
        self._compaction.mark_cleaned(convert.claim(cr))

    def mark_failed(self, call: Call, cr: ttypes.CompactionInfoStruct) -> None:
        """End a compaction that failed."""
        call.log(compaction_id=required_struct(cr, "CompactionInfoStruct").id)
        self._compaction.mark_failed(convert.claim(cr), cr.errorMessage)

    def mark_refused(self, call: Call, cr: ttypes.CompactionInfoStruct) -> None:
        """End a compaction that had no reason or no right to run."""
        call.log(compaction_id=required_struct(cr, "CompactionInfoStruct").id)
        self._compaction.mark_refused(convert.claim(cr), cr.errorMessage)

    def set_hadoop_jobid(self, call: Call, jobId: str, cq_id: int) -> None:
        """Record the id of a compaction's job."""
        call.log(compaction_id=cq_id)
        self._compaction.set_hadoop_jobid(jobId, cq_id)

    def get_latest_committed_compaction_info(
        self, _call: Call, rqst: ttypes.GetLatestCommittedCompactionInfoRequest
    ) -> ttypes.GetLatestCommittedCompactionInfoResponse:
        """Find the newest finished compaction of each partition."""
        finished = self._compaction.get_latest_committed_compaction_info(
            table_name(rqst.dbname, rqst.tablename),
            None if rqst.partitionnames is None else [convert.partition(name) for name in rqst.partitionnames],
            rqst.lastCompactionId,
        )
        return ttypes.GetLatestCommittedCompactionInfoResponse(
            compactions=[self._finished(compaction) for compaction in finished]
        )

    def abort_Compactions(self, call: Call, rqst: ttypes.AbortCompactionRequest) -> ttypes.AbortCompactResponse:
        """Cancel requests that no worker has claimed."""
        call.log(compaction_ids=rqst.compactionIds)
        return ttypes.AbortCompactResponse(
            abortedcompacts={
                result.id: ttypes.AbortCompactionResponseElement(result.id, result.status, result.message)
                for result in self._compaction.abort_compactions(rqst.compactionIds or [])
            }
        )

    def submit_for_cleanup(self, call: Call, o1: ttypes.CompactionRequest, o2: int | None, o3: int | None) -> bool:
        """Queue the leftovers of a soft drop; ``o2``: highest write id, ``o3``: the dropping transaction."""
        if o2 is None or o3 is None:
            raise MetaError("submit_for_cleanup needs a highest write id (o2) and a transaction (o3)")
        call.log(txn_id=o3)
        return self._compaction.submit_for_cleanup(convert.new_request(o1, call.connection.peer), o2, o3)

    @staticmethod
    def _finished(compaction: Compaction) -> ttypes.CompactionInfoStruct:
        answer = convert.info(compaction)
        if compaction.state is CompactionState.SUCCEEDED:
            answer.state = CompactionState.SUCCEEDED.code
        return answer
