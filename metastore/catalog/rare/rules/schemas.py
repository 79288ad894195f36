"""Schema registry: schemas of a database, their versions, and SerDes that have names.

A version keeps the SerDe as it was when it was given. Names of schemas and columns are lower case, those of SerDes are
as sent. Source: CAT-R1.
"""

from typing import Any

from metastore.catalog.rare.rules.objects import (
    Json,
    Key,
    Kind,
    Method,
    Outcome,
    Place,
    Work,
    all_of,
    alter,
    catalog_of,
    create,
    drop,
    get,
    name_of,
    part_of,
    read,
    the,
)
from metastore.errors import AlreadyExistsError, InvalidOperationError, MetaError, NoSuchObjectError

SCHEMA = Kind("schema", in_database=True)
VERSION = Kind("schema version", in_database=True)
SERDE = Kind("SerDe")
_ALWAYS_ALTERED = ("compatibility", "validationLevel", "canEvolve")
_ALTERED_IF_SET = ("schemaGroup", "description")


def _schema_key(name: Json, field: str = "schemaName") -> Key:
    """Return the key of a schema by its ISchemaName, or by the ISchema, which calls its name ``name``."""
    return (
        catalog_of(name.get("catName")),
        name_of(name.get("dbName"), "database name"),
        name_of(name.get(field), "schema name"),
    )


def _version_key(version: Json) -> Key:
    return (*_schema_key(part_of(version, "schema")), str(version.get("version", 0)))


def _serde_key(name: str | None) -> Key:
    if name is None:
        raise MetaError("Null SerDe name is not allowed")
    return (name,)


def _serde_body(serde: Json) -> Json:
    return {"parameters": {}, **serde}


def _schema_body(work: Work) -> Json:
    catalog, db, name = _schema_key(work.request, "name")
    for field in ("schemaType", "compatibility", "validationLevel"):
        part_of(work.request, field)
    return {"canEvolve": False, **work.request, "catName": catalog, "dbName": db, "name": name}


def _altered(schema: Json, work: Work) -> Json:
    new = part_of(work.request, "newSchema")
    always = {"canEvolve": False, **new}
    return {
        **schema,
        **{field: part_of(always, field) for field in _ALWAYS_ALTERED},
        **{field: new[field] for field in _ALTERED_IF_SET if field in new},
    }


def _dropped(work: Work) -> Outcome:
    key = _schema_key(work.request)
    the(SCHEMA, key, work.found)
    if all_of(VERSION, work.found):
        raise InvalidOperationError(f"Schema {'.'.join(key)} has versions: drop each with drop_schema_version first")
    return Outcome(changes={Place(SCHEMA, key): None})


def _add_version(work: Work) -> Outcome:
    place = Place(VERSION, _version_key(work.request))
    catalog, db, name, number = place.key
    the(SCHEMA, place.key[:3], work.found)
    if place in work.found:
        raise AlreadyExistsError(f"Schema version {'.'.join(place.key)} already exists")
    body = {
        "createdAt": 0,
        **work.request,
        "schema": {"catName": catalog, "dbName": db, "schemaName": name},
        "version": int(number),
        "cols": [
            {**column, "name": name_of(column.get("name"), "column name")} for column in work.request.get("cols", [])
        ],
    }
    serde = work.request.get("serDe")
    if serde is None:
        return Outcome(changes={place: body})
    own = Place(SERDE, _serde_key(serde.get("name")))
    body["serDe"] = _serde_body(serde)
    return Outcome(changes={place: body, own: work.found.get(own, body["serDe"])})


def _scope_of_new_version(request: Json) -> list[Place]:
    key = _version_key(request)
    serde = request.get("serDe")
    own = [] if serde is None else [Place(SERDE, _serde_key(serde.get("name")))]
    return [Place(SCHEMA, key[:3]), Place(VERSION, key), *own]


def _versions(work: Work) -> list[Json]:
    """Return the versions of a schema, in the order of their numbers. Raises: NoSuchObjectError if there are none."""
    versions = sorted(all_of(VERSION, work.found).values(), key=lambda version: version["version"])
    if not versions:
        raise NoSuchObjectError(f"Schema {'.'.join(_schema_key(work.request))} does not exist or has no version")
    return versions


def _with_column(work: Work) -> Json:
    """Return the versions with a column of this name, namespace (its comment) and type, as far as these are given."""
    wanted = {
        field: work.request[sent]
        for field, sent in (("name", "colName"), ("comment", "colNamespace"), ("type", "type"))
        if sent in work.request
    }
    if not wanted.keys() & {"name", "comment"}:
        raise MetaError("Specify a column's name or namespace: every version would match otherwise")
    if "name" in wanted:
        wanted["name"] = name_of(wanted["name"], "column name")
    matching = (
        {"schema": version["schema"], "version": version["version"]}
        for version in all_of(VERSION, work.found).values()
        if any(wanted.items() <= column.items() for column in version["cols"])
    )
    return {"schemaVersions": list(matching)}


def _described(request: Json) -> Key:
    return _version_key(part_of(request, "schemaVersion"))


def _mapped(version: Json, work: Work) -> Json:
    return {**version, "serDe": the(SERDE, _serde_key(work.request.get("serdeName")), work.found)}


def _in_state(version: Json, work: Work) -> Json:
    kept: dict[str, Any] = {"state": work.request["state"]} if "state" in work.request else {}
    return {**version, **kept}


def _versions_of(request: Json) -> list[Place]:
    return [Place(VERSION, _schema_key(request))]


METHODS = {
    "create_ischema": create(SCHEMA, lambda request: _schema_key(request, "name"), _schema_body),
    "alter_ischema": alter(SCHEMA, lambda request: _schema_key(part_of(request, "name")), _altered),
    "get_ischema": get(SCHEMA, _schema_key),
    "drop_ischema": Method(lambda request: [Place(SCHEMA, _schema_key(request)), *_versions_of(request)], _dropped),
    "add_schema_version": Method(_scope_of_new_version, _add_version),
    "get_schema_version": get(VERSION, _version_key),
    "get_schema_latest_version": read(_versions_of, lambda work: _versions(work)[-1]),
    "get_schema_all_versions": read(_versions_of, _versions),
    "drop_schema_version": drop(VERSION, _version_key),
    "get_schemas_by_cols": read(lambda _: [Place(VERSION, ())], _with_column),
    "map_schema_version_to_serde": alter(
        VERSION, _described, _mapped, lambda request: [Place(SERDE, _serde_key(request.get("serdeName")))]
    ),
    "set_schema_version_state": alter(VERSION, _described, _in_state),
    "add_serde": create(SERDE, lambda serde: _serde_key(serde.get("name")), lambda work: _serde_body(work.request)),
    "get_serde": get(SERDE, lambda request: _serde_key(request.get("serdeName"))),
}
