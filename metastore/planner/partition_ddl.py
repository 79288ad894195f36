"""Registered partitions: added, dropped and renamed, with or without rows."""

from typing import Any

from metastore.acid_tables.table import AcidTable
from metastore.client.lock_plan import Kind
from metastore.client.partitions import new_partition
from metastore.errors import InvalidInputError
from metastore.partition_names import DEFAULT_PARTITION
from metastore.planner.body import Body
from metastore.planner.call import Answer, PlannerCall
from metastore.planner.ddl_locks import alone, locked
from metastore.planner.tables import acid_table


def add_partitions(call: PlannerCall) -> Answer:
    """Run ALTER TABLE ... ADD PARTITION."""
    table = acid_table(call.client, call.body.db_and_table())
    thrift_table, types = call.client.get_table(table.name.db, table.name.table), call.client.types
    added = [_partition(types, thrift_table.sd, table, wanted) for wanted in call.body.bodies("partitions")]
    with locked(call, table, Kind.SHARED_DDL):
        call.client.add_partitions_req(
            types.AddPartitionsRequest(
                dbName=table.name.db,
                tblName=table.name.table,
                parts=added,
                ifNotExists=call.body.flag("if_not_exists"),
                needResult=False,
            )
        )
    return {}


def drop_partitions(call: PlannerCall) -> Answer:
    """Run ALTER TABLE ... DROP PARTITION, by names, with files, all or none. Raises: NoSuchObjectError."""
    table, types = acid_table(call.client, call.body.db_and_table()), call.client.types
    with alone(call, table):
        call.client.drop_partitions_req(
            types.DropPartitionsRequest(
                dbName=table.name.db,
                tblName=table.name.table,
                parts=types.RequestPartsSpec(names=call.body.texts("names")),
                deleteData=True,
                ifExists=call.body.flag("if_exists"),
                environmentContext=types.EnvironmentContext({"ifPurge": "true"} if call.body.flag("purge") else {}),
                needResult=False,
            )
        )
    return {}


def rename_partition(call: PlannerCall) -> Answer:
    """Run ALTER TABLE ... PARTITION ... RENAME TO PARTITION: rows get new key values. Raises: NoSuchObjectError."""
    table, body = acid_table(call.client, call.body.db_and_table()), call.body
    with alone(call, table):
        partition = call.client.get_partition_by_name(table.name.db, table.name.table, body.text("partition"))
        old = list(partition.values)
        partition.values = _values(table, body)
        call.client.rename_partition(table.name.db, table.name.table, old, partition)
    return {}


def _partition(types: Any, sd: Any, table: AcidTable, wanted: Body) -> Any:
    location = wanted.text("location") if wanted.has("location") else None
    return new_partition(types, table, sd, _values(table, wanted), location)


def _values(table: AcidTable, wanted: Body) -> list[str]:
    """Return the values in the metastore's form. Raises: InvalidInputError for another number of values."""
    values = [DEFAULT_PARTITION if value is None or value == "" else str(value) for value in wanted.values("values")]
    if len(values) != len(table.partition_keys):
        raise InvalidInputError(f"A partition of {table.name} has a value for each of {table.partition_names}.")
    return values
