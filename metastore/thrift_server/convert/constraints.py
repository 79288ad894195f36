"""Conversions between Thrift's six structs for constraints and the catalog's single class."""

from collections.abc import Iterable
from typing import Any

from metastore.catalog.model import ConstraintColumn, ConstraintKind, Reference
from metastore.errors import MetaError
from metastore.thrift_gen.hive_metastore import ttypes
from metastore.thrift_server.convert.catalog import table_name_of

# A row is: kind: (struct, field of the constraint's name, field of its text).
_STRUCTS = {
    ConstraintKind.PRIMARY_KEY: (ttypes.SQLPrimaryKey, "pk_name", None),
    ConstraintKind.UNIQUE: (ttypes.SQLUniqueConstraint, "uk_name", None),
    ConstraintKind.NOT_NULL: (ttypes.SQLNotNullConstraint, "nn_name", None),
    ConstraintKind.DEFAULT: (ttypes.SQLDefaultConstraint, "dc_name", "default_value"),
    ConstraintKind.CHECK: (ttypes.SQLCheckConstraint, "dc_name", "check_expression"),
}
_KEYED = (ConstraintKind.PRIMARY_KEY, ConstraintKind.UNIQUE)


def constraints_from_thrift(kind: ConstraintKind, rows: Iterable[Any] | None) -> list[ConstraintColumn]:
    """Decode the constraints of one kind. Raises: MetaError for missing required names."""
    convert = _foreign_key_from_thrift if kind is ConstraintKind.FOREIGN_KEY else _from_thrift
    return [convert(kind, row, number) for number, row in enumerate(rows or [], start=1)]


def constraints_to_thrift(kind: ConstraintKind, constraints: Iterable[ConstraintColumn]) -> list[Any]:
    """Encode the constraints of one kind, as their own call answers."""
    convert = _foreign_key_to_thrift if kind is ConstraintKind.FOREIGN_KEY else _to_thrift
    return [convert(constraint) for constraint in constraints if constraint.kind is kind]


def all_from_thrift(
    primary: Any = None,
    foreign: Any = None,
    unique: Any = None,
    not_null: Any = None,
    default: Any = None,
    check: Any = None,
) -> list[ConstraintColumn]:
    """Decode the constraints of create_table; keys first, so that a foreign key may refer to its own table's."""
    lists = {
        ConstraintKind.PRIMARY_KEY: primary,
        ConstraintKind.UNIQUE: unique,
        ConstraintKind.FOREIGN_KEY: foreign,
        ConstraintKind.NOT_NULL: not_null,
        ConstraintKind.DEFAULT: default,
        ConstraintKind.CHECK: check,
    }
    return [constraint for kind, rows in lists.items() for constraint in constraints_from_thrift(kind, rows)]


def _from_thrift(kind: ConstraintKind, row: Any, number: int) -> ConstraintColumn:
    _, name, value = _STRUCTS[kind]
    return ConstraintColumn(
        table_name_of(row.table_db, row.table_name, row.catName),
        kind,
        _lower(getattr(row, name)) or "",
        _lower(row.column_name),
        (row.key_seq or number) if kind in _KEYED else 1,
        getattr(row, value) if value else None,
        bool(row.enable_cstr),
        bool(row.validate_cstr),
        bool(row.rely_cstr),
    )


def _foreign_key_from_thrift(kind: ConstraintKind, row: Any, number: int) -> ConstraintColumn:
    parent = table_name_of(row.pktable_db, row.pktable_name, row.catName)
    column = _lower(row.pkcolumn_name)
    if column is None:
        raise MetaError(f"A foreign key of {row.fktable_name} names no column of {parent}")
    reference = Reference(parent, column, None, row.update_rule or 0, row.delete_rule or 0)
    return ConstraintColumn(
        table_name_of(row.fktable_db, row.fktable_name, row.catName),
        kind,
        _lower(row.fk_name) or "",
        _lower(row.fkcolumn_name),
        row.key_seq or number,
        None,
        bool(row.enable_cstr),
        bool(row.validate_cstr),
        bool(row.rely_cstr),
        reference,
    )


def _to_thrift(column: ConstraintColumn) -> Any:
    struct, name, value = _STRUCTS[column.kind]
    fields: dict[str, Any] = {name: column.name}
    if value:
        fields[value] = column.value
    if column.kind in _KEYED:
        fields["key_seq"] = column.position
    return struct(
        table_db=column.table.db,
        table_name=column.table.table,
        column_name=column.column,
        enable_cstr=column.is_enabled,
        validate_cstr=column.is_validated,
        rely_cstr=column.is_relied_on,
        catName=column.table.catalog,
        **fields,
    )


def _foreign_key_to_thrift(column: ConstraintColumn) -> Any:
    to = column.reference
    if to is None:
        raise TypeError(f"{column} refers to nothing")
    return ttypes.SQLForeignKey(
        pktable_db=to.table.db,
        pktable_name=to.table.table,
        pkcolumn_name=to.column,
        fktable_db=column.table.db,
        fktable_name=column.table.table,
        fkcolumn_name=column.column,
        key_seq=column.position,
        update_rule=to.update_rule,
        delete_rule=to.delete_rule,
        fk_name=column.name,
        pk_name=to.key,
        enable_cstr=column.is_enabled,
        validate_cstr=column.is_validated,
        rely_cstr=column.is_relied_on,
        catName=column.table.catalog,
    )


def _lower(name: str | None) -> str | None:
    return None if name is None else name.strip().lower()
