"""Marks of loaded partitions. A mark names a table and partition values; the partition need not exist.

A mark stays when the table is dropped. Source: CAT-R6.
"""

from metastore.catalog.rare.rules.objects import (
    PARTITION_MARK,
    TABLE,
    Json,
    Key,
    Method,
    Outcome,
    Place,
    Work,
    name_of,
    part_of,
    read,
)
from metastore.errors import InvalidPartitionError, UnknownTableError
from metastore.ids import split_catalog


def _table(request: Json) -> Key:
    catalog, db = split_catalog(part_of(request, "db_name"))
    return catalog, name_of(db, "database name"), name_of(part_of(request, "tbl_name"), "table name")


def _mark(work: Work) -> Place:
    """Return the mark's place. Raises: UnknownTableError, InvalidPartitionError for values of other keys."""
    names, values, event = _table(work.request), part_of(work.request, "part_vals"), part_of(work.request, "eventType")
    table = work.found.get(Place(TABLE, names))
    if table is None:
        raise UnknownTableError(f"Table {'.'.join(names)} does not exist")
    keys = [key["name"] for key in table["partitionKeys"]]
    if len(keys) != len(values) or not all(key in values for key in keys):
        raise InvalidPartitionError(f"Table {'.'.join(names)} has the partition keys {keys}, not {sorted(values)}")
    return Place(PARTITION_MARK, (*names, str(event), *(values[key] for key in keys)))


def _scope(request: Json) -> list[Place]:
    return [Place(TABLE, _table(request))]


def _scope_with_marks(request: Json) -> list[Place]:
    return [*_scope(request), Place(PARTITION_MARK, _table(request))]


METHODS = {
    "markPartitionForEvent": Method(_scope, lambda work: Outcome(changes={_mark(work): {}})),
    "isPartitionMarkedForEvent": read(_scope_with_marks, lambda work: _mark(work) in work.found),
}
