"""A transactional table as a statement declares it, for the metastore's calls."""

from collections.abc import Sequence
from typing import Any

from metastore.acid_tables.serde_storage import (
    LAZY_SIMPLE,
    HiveStorage,
    require_seen_as_declared,
    serde_properties,
    stored_classes,
)
from metastore.acid_tables.table import require_user_names, stored_as
from metastore.catalog.model import ConstraintKind
from metastore.client import tables
from metastore.client.declared_constraints import Declaration
from metastore.errors import InvalidInputError, InvalidOperationError
from metastore.planner.body import Body
from metastore.planner.call import PlannerCall


def defined(call: PlannerCall, body: Body) -> Any:
    """Return the table of a definition, as the metastore's calls take it. Raises: InvalidOperationError."""
    name = body.db_and_table()
    columns, keys = _fields(call, body, "columns"), _fields(call, body, "partition_keys")
    if not columns:
        raise InvalidOperationError(f"CREATE TABLE {name} declares no columns.")
    require_user_names(name, [column.name for column in (*columns, *keys)])
    parameters = {"bucketing_version": "2", "transactional": "true", **properties(body)}
    if body.has("comment"):
        parameters["comment"] = body.text("comment")
    sd = _storage(call, body, columns)
    seen = require_seen_as_declared(sd.serdeInfo.serializationLib, [(column.name, column.type) for column in columns])
    storage = stored_as(sd, seen, parameters)
    if isinstance(storage, HiveStorage):
        storage.require_storable(name)
    owner = call.user or body.text("user", call.client.user)
    return tables.managed_table(call.client, name, owner, sd, keys, parameters)


def properties(body: Body) -> dict[str, str]:
    """Return the properties that a body names. Raises: InvalidInputError."""
    named = body.body("properties").fields if body.has("properties") else {}
    if not all(isinstance(value, str) for value in named.values()):
        raise InvalidInputError(f"{body.place}properties must be an object of texts.")
    return dict(named)


def _fields(call: PlannerCall, body: Body, name: str) -> list[Any]:
    return [
        call.client.types.FieldSchema(
            column.text("name").lower(), column.text("type"), column.text("comment") if column.has("comment") else None
        )
        for column in body.bodies(name)
    ]


def constraints(body: Body) -> list[Declaration]:
    """Return NOT NULL and DEFAULT of the columns, and the constraints that are declared beside the columns."""
    declared = [declaration(constraint) for constraint in body.bodies("constraints")]
    for column in (*body.bodies("columns"), *body.bodies("partition_keys")):
        name = column.text("name").lower()
        if column.flag("not_null"):
            declared.append(Declaration(ConstraintKind.NOT_NULL, None, (name,)))
        if column.has("default"):
            declared.append(Declaration(ConstraintKind.DEFAULT, None, (name,), column.text("default")))
    return declared


def declaration(body: Body) -> Declaration:
    """Return a constraint in the form that callers send."""
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


def _storage(call: PlannerCall, body: Body, columns: Sequence[Any]) -> Any:
    types = call.client.types
    rows = body.body("row_format") if body.has("row_format") else Body({})
    of_rows = properties(rows)
    stored, named = body.text("format", "orc"), rows.text("serde") if rows.has("serde") else None
    input_format, comma, output_format = stored.partition(",")
    serde = named or LAZY_SIMPLE
    if not comma:
        input_format, output_format, serde = stored_classes(stored.lower(), named, of_rows)
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
        serdeInfo=types.SerDeInfo(name=None, serializationLib=serde, parameters=serde_properties(serde, of_rows)),
    )


def _order(types: Any, pair: Any) -> Any:
    match pair:
        case [str(name), "asc" | "desc" as direction]:
            return types.Order(name.lower(), int(direction == "asc"))
    raise InvalidInputError(f'buckets.sort is a list like [["id", "asc"]], not {pair!r}.')
