"""Changes of partitions, in the positional form of 2.3 and 3.x and in the requests of 4.x.

Environment contexts say who counts the files: the client, or this service.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

from metastore.catalog.rules.partitions import Partition
from metastore.catalog.service.partitions import Dropped, PartitionService
from metastore.errors import InvalidRequestError
from metastore.ids import TableName
from metastore.locks.rules import Changer
from metastore.thrift_gen.hive_metastore import ttypes
from metastore.thrift_server.convert.catalog import context_of
from metastore.thrift_server.convert.partitions import (
    Shape,
    draft_of,
    drafts_of,
    drafts_of_specs,
    encode_partition,
    encode_partitions,
    table_of,
    table_of_partition,
)
from metastore.thrift_server.dispatch.call import Call
from metastore.thrift_server.responses.partition_wire import PartitionEncoder
from metastore.thrift_server.responses.streamed import InPieces
from metastore.thrift_server.waiting.own_locks import STRANGERS, OwnLocks

Values = list[str] | None


class PartitionHandlers:
    """The calls add_partition*, append_partition*, alter_partition*, rename_partition* and drop_partition*."""

    def __init__(self, partitions: PartitionService, changers: OwnLocks = STRANGERS) -> None:
        """Prepare the handlers. ``partitions``: does the work; ``changers``: knows the caller's locks."""
        self._partitions, self._changers = partitions, changers

    def add_partition(self, call: Call, new_part: ttypes.Partition) -> ttypes.Partition:
        """Add a partition."""
        return self.add_partition_with_environment_context(call, new_part, None)

    def add_partition_with_environment_context(
        self, _call: Call, new_part: ttypes.Partition, environment_context: ttypes.EnvironmentContext | None
    ) -> ttypes.Partition:
        """Add a partition as ``add_partition``."""
        name, context = table_of_partition(new_part), context_of(environment_context)
        return encode_partition(name, self._partitions.add_partitions(name, [draft_of(new_part, name)], context)[0])

    def add_partitions(self, _call: Call, new_parts: list[ttypes.Partition] | None) -> int:
        """Add partitions of a table; return their number."""
        parts = _required(new_parts)
        if not parts:
            return 0
        return len(self._partitions.add_partitions(table_of_partition(parts[0]), drafts_of(parts)))

    def add_partitions_pspec(self, _call: Call, new_parts: list[ttypes.PartitionSpec] | None) -> int:
        """Add the partitions of several specifications; return their number."""
        specs = _required(new_parts)
        if not specs:
            return 0
        name, drafts = drafts_of_specs(specs)
        return len(self._partitions.add_partitions(name, drafts))

    def add_partitions_req(self, _call: Call, request: ttypes.AddPartitionsRequest) -> ttypes.AddPartitionsResult:
        """Add several partitions; skip existing ones if the request says so; return those that were added."""
        name, shared = table_of(request.dbName, request.tblName, request.catName), _shared_schema(request)
        drafts, context = drafts_of(request.parts or (), name, shared), context_of(request.environmentContext)
        added = (
            self._partitions.add_partitions(name, drafts, context, if_not_exists=bool(request.ifNotExists))
            if drafts
            else []
        )
        return ttypes.AddPartitionsResult(_wanted(request, name, added), partitionColSchema=shared)

    def append_partition(self, call: Call, db_name: str, tbl_name: str, part_vals: Values) -> ttypes.Partition:
        """Add a partition that looks like its table."""
        return self.append_partition_with_environment_context(call, db_name, tbl_name, part_vals, None)

    def append_partition_with_environment_context(
        self,
        _call: Call,
        db_name: str,
        tbl_name: str,
        part_vals: Values,
        environment_context: ttypes.EnvironmentContext | None,
    ) -> ttypes.Partition:
        """Add a partition as ``append_partition``."""
        name, context = table_of(db_name, tbl_name), context_of(environment_context)
        return encode_partition(name, self._partitions.append_partition(name, part_vals, context))

    def append_partition_by_name(self, call: Call, db_name: str, tbl_name: str, part_name: str) -> ttypes.Partition:
        """Add a partition as ``append_partition``, with values from a name."""
        return self.append_partition_by_name_with_environment_context(call, db_name, tbl_name, part_name, None)

    def append_partition_by_name_with_environment_context(
        self,
        _call: Call,
        db_name: str,
        tbl_name: str,
        part_name: str,
        environment_context: ttypes.EnvironmentContext | None,
    ) -> ttypes.Partition:
        """Add a partition as ``append_partition_by_name``."""
        name, context = table_of(db_name, tbl_name), context_of(environment_context)
        return encode_partition(name, self._partitions.append_partition_by_name(name, part_name, context))

    def append_partition_req(
        self, _call: Call, appendPartitionsReq: ttypes.AppendPartitionsRequest
    ) -> ttypes.Partition:
        """Add a partition as ``append_partition``, with values or a name."""
        req = appendPartitionsReq
        name, context = table_of(req.dbName, req.tableName, req.catalogName), context_of(req.environmentContext)
        if req.partVals is None:
            return encode_partition(name, self._partitions.append_partition_by_name(name, req.name, context))
        return encode_partition(name, self._partitions.append_partition(name, req.partVals, context))

    def alter_partition(self, call: Call, db_name: str, tbl_name: str, new_part: ttypes.Partition) -> None:
        """Replace a partition."""
        self.alter_partitions(call, db_name, tbl_name, [new_part])

    def alter_partition_with_environment_context(
        self,
        call: Call,
        db_name: str,
        tbl_name: str,
        new_part: ttypes.Partition,
        environment_context: ttypes.EnvironmentContext | None,
    ) -> None:
        """Replace a partition as ``alter_partition``."""
        self.alter_partitions(call, db_name, tbl_name, [new_part], environment_context)

    def alter_partitions(
        self,
        call: Call,
        db_name: str,
        tbl_name: str,
        new_parts: list[ttypes.Partition] | None,
        environment_context: ttypes.EnvironmentContext | None = None,
    ) -> None:
        """Replace several, all or none."""
        name, context = table_of(db_name, tbl_name), context_of(environment_context)
        self._partitions.alter_partitions(
            name, drafts_of(new_parts or (), name), context, changer=self._changers.of(call, environment_context)
        )

    def alter_partitions_with_environment_context(
        self,
        call: Call,
        db_name: str,
        tbl_name: str,
        new_parts: list[ttypes.Partition] | None,
        environment_context: ttypes.EnvironmentContext | None,
    ) -> None:
        """Replace partitions as ``alter_partitions``."""
        self.alter_partitions(call, db_name, tbl_name, new_parts, environment_context)

    def alter_partitions_req(self, call: Call, req: ttypes.AlterPartitionsRequest) -> ttypes.AlterPartitionsResponse:
        """Replace partitions as ``alter_partitions``."""
        name = table_of(req.dbName, req.tableName, req.catName)
        self._partitions.alter_partitions(
            name,
            drafts_of(req.partitions or (), name, _shared_schema(req)),
            context_of(req.environmentContext),
            changer=self._changers.of(call, req.environmentContext),
        )
        return ttypes.AlterPartitionsResponse()

    def rename_partition(
        self, call: Call, db_name: str, tbl_name: str, part_vals: Values, new_part: ttypes.Partition
    ) -> None:
        """Give a partition other values."""
        name = table_of(db_name, tbl_name)
        self._partitions.rename_partition(name, part_vals, draft_of(new_part, name), changer=self._changers.of(call))

    def rename_partition_req(self, call: Call, req: ttypes.RenamePartitionRequest) -> ttypes.RenamePartitionResponse:
        """Rename a partition as ``rename_partition``."""
        name = table_of(req.dbName, req.tableName, req.catName)
        self._partitions.rename_partition(
            name, req.partVals, draft_of(req.newPart, name), changer=self._changers.of(call)
        )
        return ttypes.RenamePartitionResponse()

    def drop_partition(self, call: Call, db_name: str, tbl_name: str, part_vals: Values, deleteData: bool) -> bool:
        """Remove the partition with these values."""
        return self.drop_partition_with_environment_context(call, db_name, tbl_name, part_vals, deleteData, None)

    def drop_partition_with_environment_context(
        self,
        call: Call,
        db_name: str,
        tbl_name: str,
        part_vals: Values,
        deleteData: bool,
        environment_context: ttypes.EnvironmentContext | None,
    ) -> bool:
        """Remove a partition as ``drop_partition``."""
        self._partitions.drop_partition(
            table_of(db_name, tbl_name),
            part_vals,
            delete_data=bool(deleteData),
            changer=self._changers.of(call, environment_context),
        )
        return True

    def drop_partition_by_name(self, call: Call, db_name: str, tbl_name: str, part_name: str, deleteData: bool) -> bool:
        """Remove the partition with this name."""
        return self.drop_partition_by_name_with_environment_context(
            call, db_name, tbl_name, part_name, deleteData, None
        )

    def drop_partition_by_name_with_environment_context(
        self,
        call: Call,
        db_name: str,
        tbl_name: str,
        part_name: str,
        deleteData: bool,
        environment_context: ttypes.EnvironmentContext | None,
    ) -> bool:
        """Remove a partition as ``drop_partition_by_name``."""
        self._partitions.drop_partition_by_name(
            table_of(db_name, tbl_name),
            part_name,
            delete_data=bool(deleteData),
            changer=self._changers.of(call, environment_context),
        )
        return True

    def drop_partition_req(self, call: Call, dropPartitionReq: ttypes.DropPartitionRequest) -> bool:
        """Remove a partition, by values or by name."""
        req, changer = dropPartitionReq, self._changers.of(call, dropPartitionReq.environmentContext)
        name, delete_data = table_of(req.dbName, req.tblName, req.catName), bool(req.deleteData)
        if req.partVals is None:
            self._partitions.drop_partition_by_name(name, req.partName, delete_data=delete_data, changer=changer)
        else:
            self._partitions.drop_partition(name, req.partVals, delete_data=delete_data, changer=changer)
        return True

    def drop_partitions_req(
        self, call: Call, req: ttypes.DropPartitionsRequest
    ) -> ttypes.DropPartitionsResult | InPieces:
        """Remove several, by names or by expressions, all or none; return those that were removed."""
        name = table_of(req.dbName, req.tblName, req.catName)
        dropped = self._drop(name, req, self._changers.of(call, req.environmentContext))
        call.log(table=str(name), dropped=dropped.size)
        return _dropped(req, dropped)

    def _drop(self, name: TableName, req: ttypes.DropPartitionsRequest, changer: Changer) -> Dropped:
        delete_data, if_exists, wanted = bool(req.deleteData), bool(req.ifExists), req.parts
        if wanted is not None and wanted.names is not None:
            return self._partitions.drop_partitions(
                name,
                wanted.names,
                delete_data=delete_data,
                if_exists=if_exists,
                is_wanted=bool(req.needResult),
                changer=changer,
            )
        if wanted is not None and wanted.exprs is not None:
            return self._partitions.drop_partitions_by_expr(
                name,
                [each.expr for each in wanted.exprs],
                delete_data=delete_data,
                if_exists=if_exists,
                is_wanted=bool(req.needResult),
                changer=changer,
            )
        raise InvalidRequestError("Partition spec is not set")


def _required(parts: list[Any] | None) -> list[Any]:
    if parts is None:
        raise InvalidRequestError("Partition list cannot be null")
    return parts


def _shared_schema(request: ttypes.AddPartitionsRequest | ttypes.AlterPartitionsRequest) -> list[Any] | None:
    """Return the columns that all partitions of the request share, if it says so."""
    return request.partitionColSchema if request.skipColumnSchemaForPartition else None


def _wanted(
    request: ttypes.AddPartitionsRequest, name: TableName, added: list[Partition]
) -> list[ttypes.Partition] | None:
    """Return the partitions of the answer, if the request wants them."""
    shape = Shape(columns=not request.skipColumnSchemaForPartition)
    return encode_partitions(name, added, shape) if request.needResult else None


def _dropped(request: ttypes.DropPartitionsRequest, dropped: Dropped) -> ttypes.DropPartitionsResult | InPieces:
    """Return the answer, with the partitions as they were if the request wants them."""
    if not request.needResult:
        return ttypes.DropPartitionsResult()
    encoder = PartitionEncoder(dropped.table.name, columns=not request.skipColumnSchemaForPartition)
    pieces = nullcontext(map(encoder.ended, dropped.pieces))
    return InPieces(ttypes.DropPartitionsResult, ttypes.Partition, dropped.size, pieces)
