"""Changing partitions, in the positional dialect of 2.3 and 3.x and in the requests of 4.x.

Environment contexts are accepted and hold nothing that changes what happens: statistics are the client's, and there is
no trash to skip.
"""

from typing import Any

from metastore.catalog.service.partitions import PartitionService
from metastore.errors import InvalidRequestError
from metastore.thrift_gen.hive_metastore import ttypes
from metastore.thrift_server.call import Call
from metastore.thrift_server.changers import STRANGERS, Changers
from metastore.thrift_server.convert_partitions import (
    Shape,
    draft_of,
    drafts_of,
    drafts_of_specs,
    encode_partition,
    encode_partitions,
    table_of,
    table_of_partition,
)

Context = Any  # ttypes.EnvironmentContext | None
Values = list[str] | None


class PartitionHandlers:
    """add_partition*, append_partition*, alter_partition*, rename_partition*, drop_partition*, exchange_partition*."""

    def __init__(self, partitions: PartitionService, changers: Changers = STRANGERS) -> None:
        """``partitions``: does the work; ``changers``: tells whose locks are in the way."""
        self._partitions, self._changers = partitions, changers

    def add_partition(self, call: Call, new_part: ttypes.Partition) -> ttypes.Partition:
        """Add one."""
        del call
        name = table_of_partition(new_part)
        return encode_partition(name, self._partitions.add_partitions(name, [draft_of(new_part, name)])[0])

    def add_partition_with_environment_context(
        self, call: Call, new_part: ttypes.Partition, environment_context: Context
    ) -> ttypes.Partition:
        """As ``add_partition``."""
        del environment_context
        return self.add_partition(call, new_part)

    def add_partitions(self, call: Call, new_parts: list[ttypes.Partition] | None) -> int:
        """Add several of one table; how many."""
        del call
        if new_parts is None:
            raise InvalidRequestError("Partition list cannot be null")
        if not new_parts:
            return 0
        name = table_of_partition(new_parts[0])
        return len(self._partitions.add_partitions(name, drafts_of(new_parts)))

    def add_partitions_pspec(self, call: Call, new_parts: list[ttypes.PartitionSpec] | None) -> int:
        """Add those of several specifications; how many."""
        del call
        if new_parts is None:
            raise InvalidRequestError("Partition list cannot be null")
        if not new_parts:
            return 0
        name, drafts = drafts_of_specs(new_parts)
        return len(self._partitions.add_partitions(name, drafts))

    def add_partitions_req(self, call: Call, request: ttypes.AddPartitionsRequest) -> ttypes.AddPartitionsResult:
        """Add several, leaving existing ones alone if asked to; those that were added."""
        del call
        name = table_of(request.dbName, request.tblName, request.catName)
        shared = request.partitionColSchema if request.skipColumnSchemaForPartition else None
        drafts = drafts_of(request.parts or (), name, shared)
        added = self._partitions.add_partitions(name, drafts, if_not_exists=bool(request.ifNotExists)) if drafts else []
        shape = Shape(columns=not request.skipColumnSchemaForPartition)
        return ttypes.AddPartitionsResult(
            partitions=encode_partitions(name, added, shape) if request.needResult else None, partitionColSchema=shared
        )

    def append_partition(self, call: Call, db_name: str, tbl_name: str, part_vals: Values) -> ttypes.Partition:
        """Add one that looks like its table."""
        del call
        name = table_of(db_name, tbl_name)
        return encode_partition(name, self._partitions.append_partition(name, part_vals))

    def append_partition_with_environment_context(
        self, call: Call, db_name: str, tbl_name: str, part_vals: Values, environment_context: Context
    ) -> ttypes.Partition:
        """As ``append_partition``."""
        del environment_context
        return self.append_partition(call, db_name, tbl_name, part_vals)

    def append_partition_by_name(self, call: Call, db_name: str, tbl_name: str, part_name: str) -> ttypes.Partition:
        """As ``append_partition``, with values from a name."""
        del call
        name = table_of(db_name, tbl_name)
        return encode_partition(name, self._partitions.append_partition_by_name(name, part_name))

    def append_partition_by_name_with_environment_context(
        self, call: Call, db_name: str, tbl_name: str, part_name: str, environment_context: Context
    ) -> ttypes.Partition:
        """As ``append_partition_by_name``."""
        del environment_context
        return self.append_partition_by_name(call, db_name, tbl_name, part_name)

    def append_partition_req(self, call: Call, appendPartitionsReq: ttypes.AppendPartitionsRequest) -> ttypes.Partition:  # noqa: N803
        """As ``append_partition``, with values or a name."""
        del call
        req = appendPartitionsReq
        name = table_of(req.dbName, req.tableName, req.catalogName)
        if req.partVals is None:
            return encode_partition(name, self._partitions.append_partition_by_name(name, req.name))
        return encode_partition(name, self._partitions.append_partition(name, req.partVals))

    def alter_partition(self, call: Call, db_name: str, tbl_name: str, new_part: ttypes.Partition) -> None:
        """Replace one."""
        self.alter_partitions(call, db_name, tbl_name, [new_part])

    def alter_partition_with_environment_context(
        self, call: Call, db_name: str, tbl_name: str, new_part: ttypes.Partition, environment_context: Context
    ) -> None:
        """As ``alter_partition``."""
        self.alter_partitions(call, db_name, tbl_name, [new_part], environment_context)

    def alter_partitions(
        self, call: Call, db_name: str, tbl_name: str, new_parts: list[ttypes.Partition] | None,
        environment_context: Context = None,
    ) -> None:
        """Replace several, all or none."""
        name = table_of(db_name, tbl_name)
        self._partitions.alter_partitions(name, drafts_of(new_parts or (), name),
                                          changer=self._changers.of(call, environment_context))

    def alter_partitions_with_environment_context(
        self,
        call: Call,
        db_name: str,
        tbl_name: str,
        new_parts: list[ttypes.Partition] | None,
        environment_context: Context,
    ) -> None:
        """As ``alter_partitions``."""
        self.alter_partitions(call, db_name, tbl_name, new_parts, environment_context)

    def alter_partitions_req(self, call: Call, req: ttypes.AlterPartitionsRequest) -> ttypes.AlterPartitionsResponse:
        """As ``alter_partitions``."""
        name = table_of(req.dbName, req.tableName, req.catName)
        shared = req.partitionColSchema if req.skipColumnSchemaForPartition else None
        self._partitions.alter_partitions(name, drafts_of(req.partitions or (), name, shared),
                                          changer=self._changers.of(call, req.environmentContext))
        return ttypes.AlterPartitionsResponse()

    def rename_partition(
        self, call: Call, db_name: str, tbl_name: str, part_vals: Values, new_part: ttypes.Partition
    ) -> None:
        """Give one other values."""
        name = table_of(db_name, tbl_name)
        self._partitions.rename_partition(name, part_vals, draft_of(new_part, name), changer=self._changers.of(call))

    def rename_partition_req(self, call: Call, req: ttypes.RenamePartitionRequest) -> ttypes.RenamePartitionResponse:
        """As ``rename_partition``."""
        name = table_of(req.dbName, req.tableName, req.catName)
        self._partitions.rename_partition(name, req.partVals, draft_of(req.newPart, name),
                                          changer=self._changers.of(call))
        return ttypes.RenamePartitionResponse()

    def drop_partition(self, call: Call, db_name: str, tbl_name: str, part_vals: Values, deleteData: bool) -> bool:  # noqa: FBT001, N803
        """Remove the one with these values."""
        return self.drop_partition_with_environment_context(call, db_name, tbl_name, part_vals, deleteData, None)

    def drop_partition_with_environment_context(
        self,
        call: Call,
        db_name: str,
        tbl_name: str,
        part_vals: Values,
        deleteData: bool,  # noqa: FBT001, N803
        environment_context: Context,
    ) -> bool:
        """As ``drop_partition``."""
        self._partitions.drop_partition(table_of(db_name, tbl_name), part_vals, delete_data=bool(deleteData),
                                        changer=self._changers.of(call, environment_context))
        return True

    def drop_partition_by_name(self, call: Call, db_name: str, tbl_name: str, part_name: str, deleteData: bool) -> bool:  # noqa: FBT001, N803
        """Remove the one with this name."""
        return self.drop_partition_by_name_with_environment_context(
            call, db_name, tbl_name, part_name, deleteData, None)

    def drop_partition_by_name_with_environment_context(
        self,
        call: Call,
        db_name: str,
        tbl_name: str,
        part_name: str,
        deleteData: bool,  # noqa: FBT001, N803
        environment_context: Context,
    ) -> bool:
        """As ``drop_partition_by_name``."""
        self._partitions.drop_partition_by_name(table_of(db_name, tbl_name), part_name, delete_data=bool(deleteData),
                                                changer=self._changers.of(call, environment_context))
        return True

    def drop_partition_req(self, call: Call, dropPartitionReq: ttypes.DropPartitionRequest) -> bool:  # noqa: N803
        """Remove one, by values or by name."""
        req = dropPartitionReq
        changer = self._changers.of(call, req.environmentContext)
        name = table_of(req.dbName, req.tblName, req.catName)
        if req.partVals is None:
            self._partitions.drop_partition_by_name(name, req.partName, delete_data=bool(req.deleteData),
                                                    changer=changer)
        else:
            self._partitions.drop_partition(name, req.partVals, delete_data=bool(req.deleteData), changer=changer)
        return True

    def drop_partitions_req(self, call: Call, req: ttypes.DropPartitionsRequest) -> ttypes.DropPartitionsResult:
        """Remove several, by names or by expressions, all or none; those that were removed."""
        name, delete_data, if_exists = (
            table_of(req.dbName, req.tblName, req.catName),
            bool(req.deleteData),
            bool(req.ifExists),
        )
        changer = self._changers.of(call, req.environmentContext)
        if req.parts is not None and req.parts.names is not None:
            dropped = self._partitions.drop_partitions(
                name, req.parts.names, delete_data=delete_data, if_exists=if_exists, changer=changer
            )
        elif req.parts is not None and req.parts.exprs is not None:
            dropped = self._partitions.drop_partitions_by_expr(
                name, [expr.expr for expr in req.parts.exprs], delete_data=delete_data, if_exists=if_exists,
                changer=changer,
            )
        else:
            raise InvalidRequestError("Partition spec is not set")
        call.log(table=str(name), dropped=len(dropped))
        shape = Shape(columns=not req.skipColumnSchemaForPartition)
        return ttypes.DropPartitionsResult(encode_partitions(name, dropped, shape) if req.needResult else None)
