"""Definitions of transactional tables: CREATE, ALTER and DROP by the rules for such tables.

Rule: a change of an existing table holds it exclusively. Files are never rewritten: columns with which they could not
be read are refused (``acid_tables.column_changes``).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from metastore.acid_tables.column_changes import placed, require_known, require_same_rows
from metastore.acid_tables.serde_storage import (
    LAZY_SIMPLE,
    HiveStorage,
    require_seen_as_declared,
    serde_properties,
    stored_classes,
)
from metastore.acid_tables.table import ColumnDefinition, require_user_names, stored_as
from metastore.catalog.model import ConstraintKind
from metastore.client import tables
from metastore.client.declared_constraints import Declaration, arguments
from metastore.client.partitions import partition_places
from metastore.errors import AlreadyExistsError, InvalidInputError, InvalidOperationError
from metastore.planner.body import Body
from metastore.planner.call import Answer, Call
from metastore.planner.locking import alone
from metastore.planner.tables import acid_table


def create(call: Call) -> Answer:
    """CREATE TABLE; ``created``: false where ``if_not_exists`` has found a table."""
    body, name = call.body, call.body.db_and_table()
    columns, keys = _fields(call, "columns"), _fields(call, "partition_keys")
    if not columns:
        raise InvalidOperationError(f"CREATE TABLE {name} declares no columns.")
    require_user_names(name, [column.name for column in (*columns, *keys)])
    parameters = {"bucketing_version": "2", "transactional": "true", **_properties(body)}
    if body.has("comment"):
        parameters["comment"] = body.text("comment")
    sd = _storage(call, columns)
    seen = require_seen_as_declared(sd.serdeInfo.serializationLib, [(column.name, column.type) for column in columns])
    storage = stored_as(sd, seen, parameters)
    if isinstance(storage, HiveStorage):
        storage.require_storable(name)
    owner = call.user or body.text("user", call.client.user)
    table = tables.managed_table(call.client, name, owner, sd, keys, parameters)
    try:
        tables.create_table(call.client, table, *arguments(call.client.types, name, _constraints(body)))
    except AlreadyExistsError:
        if not body.flag("if_not_exists"):
            raise
        return {"created": False}
    return {"created": True}


def create_like(call: Call) -> Answer:
    """CREATE TABLE ... LIKE a transactional table: its columns, storage and kind, no rows, no constraints."""
    body, source = call.body, acid_table(call.client, call.body.table("like")).name
    tables.create_table_like(
        call.client,
        body.db_and_table(),
        call.client.get_table(source.db, source.table),
        call.user or body.text("user", call.client.user),
        body.text("location") if body.has("location") else None,
        _properties(body),
    )
    return {}


def drop(call: Call) -> Answer:
    """DROP TABLE with its files; ``purge``: past any trash."""
    table = acid_table(call.client, call.body.db_and_table())
    with alone(call, table):
        context = call.client.types.EnvironmentContext({"ifPurge": "true"} if call.body.flag("purge") else {})
        call.client.drop_table_with_environment_context(table.name.db, table.name.table, True, context)  # noqa: FBT003
    return {}


def rename(call: Call) -> Answer:
    """ALTER TABLE ... RENAME TO."""
    table = acid_table(call.client, call.body.db_and_table())
    with alone(call, table):
        thrift_table = call.client.get_table(table.name.db, table.name.table)
        thrift_table.dbName, thrift_table.tableName = (
            call.body.text("to_db").lower(),
            call.body.text("to_table").lower(),
        )
        call.client.alter_table(table.name.db, table.name.table, thrift_table)
    return {}


@dataclass
class Definition:
    """A table's columns and properties while changes are made to them."""

    columns: tuple[ColumnDefinition, ...]
    properties: dict[str, str]
    renamed: list[tuple[str, str]] = field(default_factory=list)

    def column(self, change: Body) -> ColumnDefinition:
        """The column of a change. Raises: InvalidOperationError for an unknown name."""
        name = change.text("name").lower()
        require_known([column.name for column in self.columns], [name])
        return next(column for column in self.columns if column.name == name)


def alter(call: Call) -> Answer:
    """ALTER TABLE: all changes, in order, or none."""
    table = acid_table(call.client, call.body.db_and_table())
    with alone(call, table):
        thrift_table = call.client.get_table(table.name.db, table.name.table)
        before = tuple(
            ColumnDefinition(column.name.lower(), column.type, column.comment) for column in thrift_table.sd.cols
        )
        definition = Definition(before, dict(thrift_table.parameters or {}))
        for change in call.body.bodies("changes"):
            _change(change)(definition, change)
        if definition.columns != before:
            locations = [place.location for place in partition_places(call.client, table)]
            require_same_rows(call.files, table, locations, before, definition.columns, definition.renamed)
        types = call.client.types
        thrift_table.sd.cols = [
            types.FieldSchema(column.name, column.type, column.comment) for column in definition.columns
        ]
        thrift_table.parameters = definition.properties
        call.client.alter_table(table.name.db, table.name.table, thrift_table)
    return {}


def _added(definition: Definition, change: Body) -> None:
    new = ColumnDefinition(change.text("name").lower(), change.text("type"), _comment(change, None))
    columns = (*definition.columns, new)
    definition.columns = placed(columns, new.name, new, _after(change)) if change.has("after") else columns


def _renamed(definition: Definition, change: Body) -> None:
    old = definition.column(change)
    new = replace(old, name=change.text("to").lower())
    definition.columns = placed(definition.columns, old.name, new, None)
    definition.renamed.append((old.name, new.name))


def _changed(definition: Definition, change: Body) -> None:
    old = definition.column(change)
    new = replace(old, type=change.text("type", old.type), comment=_comment(change, old.comment))
    definition.columns = placed(definition.columns, old.name, new, _after(change))


def _dropped(definition: Definition, change: Body) -> None:
    dropped = definition.column(change)
    definition.columns = tuple(column for column in definition.columns if column != dropped)


def _set(definition: Definition, change: Body) -> None:
    definition.properties |= _properties(change)


def _unset(definition: Definition, change: Body) -> None:
    for key in change.texts("keys"):
        definition.properties.pop(key, None)


_CHANGES: Mapping[str, Callable[[Definition, Body], None]] = {
    "set": _set,
    "unset": _unset,
    "add_column": _added,
    "rename_column": _renamed,
    "change_type": _changed,
    "comment": _changed,
    "move_column": _changed,
    "drop_column": _dropped,
}


def _change(change: Body) -> Callable[[Definition, Body], None]:
    text = change.text("op")
    if text not in _CHANGES:
        raise InvalidInputError(f"{change.place}op must be one of {', '.join(_CHANGES)}, not {text!r}.")
    return _CHANGES[text]


def _comment(change: Body, before: str | None) -> str | None:
    return change.text("comment") if change.has("comment") else before


def _after(change: Body) -> str | None:
    """The column before the changed one; "": it comes first; None: it stays in its place."""
    return change.text("after").lower() if change.has("after") else None


def _properties(body: Body) -> dict[str, str]:
    properties = body.body("properties").fields if body.has("properties") else {}
    if not all(isinstance(value, str) for value in properties.values()):
        raise InvalidInputError(f"{body.place}properties must be an object of texts.")
    return dict(properties)


def _fields(call: Call, name: str) -> list[Any]:
    return [
        call.client.types.FieldSchema(column.text("name").lower(), column.text("type"), _comment(column, None))
        for column in call.body.bodies(name)
    ]


def _constraints(body: Body) -> list[Declaration]:
    """NOT NULL and DEFAULT, as the columns have them; and those that are declared beside the columns."""
    declared = [_declaration(constraint) for constraint in body.bodies("constraints")]
    for column in (*body.bodies("columns"), *body.bodies("partition_keys")):
        name = column.text("name").lower()
        if column.flag("not_null"):
            declared.append(Declaration(ConstraintKind.NOT_NULL, None, (name,)))
        if column.has("default"):
            declared.append(Declaration(ConstraintKind.DEFAULT, None, (name,), column.text("default")))
    return declared


def _declaration(body: Body) -> Declaration:
    parent = body.values("parent")
    return Declaration(
        body.choice("kind", ConstraintKind),
        body.text("name") if body.has("name") else None,
        tuple(body.texts("columns")),
        body.text("value") if body.has("value") else None,
        (parent[0], parent[1]) if parent else None,
        tuple(body.texts("parent_columns")),
        is_enabled=body.flag("is_enabled"),
        is_relied_on=body.flag("is_relied_on"),
    )


def _storage(call: Call, columns: Sequence[Any]) -> Any:
    body, types = call.body, call.client.types
    rows = body.body("row_format") if body.has("row_format") else Body({})
    properties = _properties(rows)
    stored, named = body.text("format", "orc"), rows.text("serde") if rows.has("serde") else None
    input_format, comma, output_format = stored.partition(",")
    serde = named or LAZY_SIMPLE
    if not comma:
        input_format, output_format, serde = stored_classes(stored.lower(), named, properties)
    buckets = body.body("buckets") if body.has("buckets") else Body({})
    return types.StorageDescriptor(
        cols=list(columns),
        location=body.text("location") if body.has("location") else None,
        inputFormat=input_format,
        outputFormat=output_format,
        compressed=False,
        numBuckets=buckets.number("count", 0) or -1,
        bucketCols=[column.lower() for column in buckets.texts("columns")],
        parameters={},
        storedAsSubDirectories=False,
        sortCols=[_order(types, pair) for pair in buckets.values("sort")],
        serdeInfo=types.SerDeInfo(name=None, serializationLib=serde, parameters=serde_properties(serde, properties)),
    )


def _order(types: Any, pair: Any) -> Any:
    match pair:
        case [str(name), "asc" | "desc" as direction]:
            return types.Order(name.lower(), int(direction == "asc"))
    raise InvalidInputError(f'buckets.sort is a list like [["id", "asc"]], not {pair!r}.')
