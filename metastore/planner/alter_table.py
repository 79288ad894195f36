"""ALTER TABLE of transactional tables: properties, columns and fields of their structs.

Rule: a change holds the table exclusively. Files are never rewritten: columns with which they could not be read are
refused (``acid_tables.column_changes``). Partitions get the table's columns, as by Hive's CASCADE: Hive reads a
partition by the columns that the partition has, and would show NULL for a newer one.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from metastore.acid.types import parse_type
from metastore.acid_tables.column_changes import is_wider, placed, require_known, require_same_rows
from metastore.acid_tables.struct_fields import retyped, with_field
from metastore.acid_tables.table import ColumnDefinition
from metastore.client.partitions import partition_places
from metastore.errors import InvalidInputError, InvalidOperationError
from metastore.planner.body import Body
from metastore.planner.call import Answer, PlannerCall
from metastore.planner.ddl_locks import alone
from metastore.planner.table_declarations import properties
from metastore.planner.tables import acid_table


@dataclass
class Definition:
    """A table's columns and properties while changes are made to them."""

    columns: tuple[ColumnDefinition, ...]
    properties: dict[str, str]
    renamed: list[tuple[str, str]] = field(default_factory=list)

    def column(self, change: Body) -> ColumnDefinition:
        """Return the column of a change. Raises: InvalidOperationError for an unknown name."""
        name = change.text("name").lower()
        require_known([column.name for column in self.columns], [name])
        return next(column for column in self.columns if column.name == name)


def alter(call: PlannerCall) -> Answer:
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
        changes_columns = definition.columns != before
        if changes_columns:
            locations = [place.location for place in partition_places(call.client, table)]
            require_same_rows(call.files, table, locations, before, definition.columns, definition.renamed)
        types = call.client.types
        thrift_table.sd.cols = [
            types.FieldSchema(column.name, column.type, column.comment) for column in definition.columns
        ]
        thrift_table.parameters = definition.properties
        call.client.alter_table_with_cascade(table.name.db, table.name.table, thrift_table, changes_columns)
    return {}


def can_widen(call: PlannerCall) -> Answer:
    """Return whether a column may get another type, as a statement asks that alters its table first."""
    table = acid_table(call.client, call.body.table())
    column = next((column for column in table.columns if column.name == call.body.text("column")), None)
    decides = {*table.bucket_columns, *(name for name, _ in table.order)}
    if column is None or column.name in decides:
        return {"can_widen": False}
    return {"can_widen": is_wider(parse_type(column.type), parse_type(call.body.text("type")))}


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
    definition.properties |= properties(change)


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


def _field_added(definition: Definition, change: Body) -> None:
    if change.has("comment") or change.has("after"):
        raise _not_of_a_field(change)
    _with_type(definition, change, with_field)


def _field_retyped(definition: Definition, change: Body) -> None:
    _with_type(definition, change, retyped)


_CHANGES_OF_FIELDS: Mapping[str, Callable[[Definition, Body], None]] = {
    "add_column": _field_added,
    "change_type": _field_retyped,
}


def _with_type(definition: Definition, change: Body, changed: Callable[..., object]) -> None:
    """Give the column a type in which the field of the change is another."""
    old = definition.column(change)
    kind = changed(parse_type(old.type), change.texts("field"), parse_type(change.text("type")))
    definition.columns = placed(definition.columns, old.name, replace(old, type=str(kind)), None)


def _change(change: Body) -> Callable[[Definition, Body], None]:
    text = change.text("op")
    if text not in _CHANGES:
        raise InvalidInputError(f"{change.place}op must be one of {', '.join(_CHANGES)}, not {text!r}.")
    if not change.has("field"):
        return _CHANGES[text]
    if text not in _CHANGES_OF_FIELDS:
        raise _not_of_a_field(change)
    return _CHANGES_OF_FIELDS[text]


def _not_of_a_field(change: Body) -> InvalidOperationError:
    column = change.text("name")
    return InvalidOperationError(
        f"{'.'.join([column, *change.texts('field')])} is a field of the column {column}: fields are only added, "
        "without a comment and at the end of their struct. ADD a COLUMN of the wanted type, UPDATE it, and DROP COLUMN "
        f"{column}."
    )


def _comment(change: Body, before: str | None) -> str | None:
    return change.text("comment") if change.has("comment") else before


def _after(change: Body) -> str | None:
    """Return the column before the changed one; "": it comes first; None: it stays in its place."""
    return change.text("after").lower() if change.has("after") else None
