"""Tables as they are stored: the completion of a new table, and the changes that an altered table may make.

Source: CAT-T1 to CAT-T3, CAT-A1 to CAT-A6; CLIENT-3, CLIENT-4 for texts that clients parse.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from metastore.acid.retention import history_retention
from metastore.catalog.model import USER, Database, Parameters, Table, TableType
from metastore.catalog.rules import column_types, descriptors, locations, transactional
from metastore.catalog.rules.names import directory_name, is_table_name
from metastore.catalog.rules.statistics import ACCURATE
from metastore.catalog.rules.storage_classes import Classes, require_storage
from metastore.compaction.queue.rules.properties import refused_property
from metastore.errors import InvalidObjectError, InvalidOperationError, MetaError
from metastore.ids import DEFAULT_CATALOG

EXTERNAL = "EXTERNAL"
DDL_TIME = "transient_lastDdlTime"
# Instructions that clients leave among the parameters.
CONSUMED = {"DO_NOT_UPDATE_STATS"}
_CONSUMED_ON_CREATE = CONSUMED | {"created_with_ctas", "created_with_ctlt"}
EXPECTED_KEY, EXPECTED_VALUE = "expected_parameter_key", "expected_parameter_value"


def is_true(text: str | None) -> bool:
    """Return True if Hive reads the parameter, a switch, as true."""
    return text is not None and text.lower() == "true"


def is_view(table: Table) -> bool:
    """Return True if there is no data behind the table."""
    return table.type == TableType.VIEW


def is_iceberg(table: Table) -> bool:
    """Return True if Iceberg's own metadata defines the table's content, of which the stored parameters are a copy."""
    return table.parameters.get("table_type", "").upper() == "ICEBERG"


def data_is_deletable(table: Table) -> bool:
    """Return True if dropping the table may remove its directory."""
    if table.type == TableType.EXTERNAL:
        return is_true(table.parameters.get("external.table.purge"))
    return not is_view(table)


def trash_of(table: Table, user: str | None) -> str | None:
    """Return the user whose trash gets the table's dropped data; None: it is removed, as ``auto.purge`` says."""
    return None if is_true(table.parameters.get("auto.purge")) else user


def follows_its_name(table: Table) -> bool:
    """Return True if the directory belongs to the table and is renamed with it, if it lies where the name puts it."""
    if is_iceberg(table) or is_view(table):
        return False
    return table.type != TableType.EXTERNAL or is_true(table.parameters.get("TRANSLATED_TO_EXTERNAL"))


def default_location(table: Table, database: Database) -> str | None:
    """Return the location of a table that names none."""
    if is_view(table):
        return None
    managed = table.type != TableType.EXTERNAL and database.managed_location
    return locations.child(managed or database.location, directory_name(table.name.table))


def new_table(
    draft: Table,
    context: Mapping[str, str],
    now: int,
    *,
    create_as_acid: bool = False,
    storage_classes: Iterable[Classes] = (),
) -> Table:
    """Return the table to store for a client's request; its location may still be absent.

    ``create_as_acid``: a managed table that can be full ACID is made so unless the client says otherwise.
    ``storage_classes``: that the operator allows for insert-only tables, besides the known ones.

    Raises: InvalidObjectError, MetaError.
    """
    if not is_table_name(draft.name.table):
        raise InvalidObjectError(f"{draft.name.table} is not a valid object name")
    table = _typed(_normalised(draft))
    column_types.require_known(table.sd["cols"], table.partition_keys)
    _require_distinct_columns(table)
    _require_consistent_skew(table)
    refused = refused_property(table.parameters)
    if refused is not None:
        raise InvalidObjectError(refused)
    parameters = {key: value for key, value in table.parameters.items() if key not in _CONSUMED_ON_CREATE}
    if context.get("STATS_GENERATED") != "TASK":
        parameters.pop(ACCURATE, None)
    if parameters.get(DDL_TIME) in (None, "0"):
        parameters[DDL_TIME] = str(now)
    history_retention(parameters)
    table = replace(table, parameters=parameters, create_time=now, owner_type=table.owner_type or USER)
    if table.name.catalog == DEFAULT_CATALOG:
        table = transactional.validated_new(transactional.by_default(table) if create_as_acid else table)
    transactional.require_name(table)
    require_storage(table.name, table.sd, table.parameters, storage_classes)
    return table


def altered_table(
    old: Table,
    draft: Table,
    context: Mapping[str, str],
    now: int,
    *,
    check_types: bool = True,
    storage_classes: Iterable[Classes] = (),
) -> Table:
    """Return the table to store when a client replaces ``old`` by ``draft``; ``storage_classes``: as for ``new_table``.

    Raises: InvalidOperationError, MetaError.
    """
    if draft.name.catalog != old.name.catalog:
        raise InvalidOperationError(f"{old.name} cannot move to the catalog {draft.name.catalog}")
    if not is_table_name(draft.name.table):
        raise InvalidOperationError(f"{draft.name.table} is not a valid object name")
    require_expected_parameter(old, draft.parameters, context)
    table = _typed(_normalised(draft))
    _require_alterable(old, table, context, check_types=check_types)
    refused = refused_property(table.parameters, old.parameters)
    if refused is not None:
        raise InvalidOperationError(refused)
    parameters = {key: value for key, value in table.parameters.items() if key not in CONSUMED}
    history_retention({key: value for key, value in parameters.items() if old.parameters.get(key) != value})
    parameters.setdefault(DDL_TIME, str(now))
    table = replace(
        table,
        id=old.id,
        parameters=parameters,
        create_time=old.create_time,
        creation_metadata=old.creation_metadata,
        owner_type=table.owner_type or old.owner_type,
        write_id=table.write_id if table.write_id > 0 else old.write_id,
    )
    if old.name.catalog == DEFAULT_CATALOG:
        table = transactional.validated_altered(old, table)
    transactional.require_name(table)
    require_storage(old.name, table.sd, table.parameters, storage_classes, known=[(old.sd, old.parameters)])
    return table


def require_expected_parameter(old: Table, new: Parameters, context: Mapping[str, str]) -> None:
    """Raise Iceberg's compare-and-set errors; clients look for these very sentences."""
    key = context.get(EXPECTED_KEY)
    if key is None or EXPECTED_VALUE not in context:
        return
    if new.get(key) is None:
        raise MetaError(f"New value for expected key {key} is not set")
    current, expected = old.parameters.get(key), context[EXPECTED_VALUE]
    if current != expected:
        raise MetaError(
            f"The table has been modified. The parameter value for key '{key}' is "
            f"'{'null' if current is None else current}'. The expected was value was '{expected}'"
        )


def new_location(old: Table, altered: Table, old_database: Database, new_database: Database) -> str | None:
    """Return the new location of a renamed table's directory; None if it stays.

    The directory moves when the directory belongs to the name, lies where the old name puts it, and the client left it
    alone.
    """
    if altered.name == old.name or not follows_its_name(old) or old.location is None:
        return None
    if altered.location not in (None, "", old.location):
        return None
    if old.location != default_location(old, old_database):
        return None
    return default_location(altered, new_database)


def with_location(table: Table, location: str | None) -> Table:
    """Return the table with another location."""
    sd = {name: value for name, value in table.sd.items() if name != "location"}
    return replace(table, sd=descriptors.with_location(sd, location))


def changed_columns(old: Table, new: Table) -> list[str]:
    """Return columns whose statistics no longer hold: removed, renamed, or of another type."""
    now = {column["name"]: column["type"] for column in new.sd["cols"]}
    return [column["name"] for column in old.sd["cols"] if now.get(column["name"]) != column["type"]]


def _normalised(draft: Table) -> Table:
    return replace(
        draft,
        sd=descriptors.normalised(draft.sd),
        partition_keys=descriptors.columns(draft.partition_keys),
        type=draft.type or (TableType.VIEW if draft.view_original_text else TableType.MANAGED),
    )


def _typed(table: Table) -> Table:
    """Return the table with the type that fits the parameter EXTERNAL, which Hive trusts more than the type."""
    external = is_true(table.parameters.get(EXTERNAL))
    if table.type == TableType.MANAGED and external:
        return replace(table, type=TableType.EXTERNAL)
    if table.type == TableType.EXTERNAL and not external:
        return replace(table, type=TableType.MANAGED)
    return table


def _require_distinct_columns(table: Table) -> None:
    seen: set[str] = set()
    for name in [*(column["name"] for column in table.sd["cols"]), *table.partition_key_names]:
        if name in seen:
            raise InvalidObjectError(f"{table.name} has the column {name} twice")
        seen.add(name)


def _require_consistent_skew(table: Table) -> None:
    skewed, names = table.sd["skewedInfo"]["skewedColNames"], {column["name"] for column in table.sd["cols"]}
    unknown = [name for name in skewed if name not in names]
    if unknown:
        raise InvalidObjectError(f"Skewed columns of {table.name} are not among its columns: {', '.join(unknown)}")
    if len(set(skewed)) != len(skewed):
        raise InvalidObjectError(f"Skewed columns of {table.name} are named twice: {', '.join(skewed)}")
    for values in table.sd["skewedInfo"]["skewedColValues"]:
        if len(values) != len(skewed):
            raise InvalidObjectError(f"{table.name}: {len(values)} skewed values for {len(skewed)} skewed columns")


def _require_alterable(old: Table, new: Table, context: Mapping[str, str], *, check_types: bool) -> None:
    columns = new.sd["cols"]
    try:
        column_types.require_known(columns, new.partition_keys)
    except InvalidObjectError as error:
        raise InvalidOperationError(str(error)) from error
    names = {column["name"] for column in columns}
    unknown = [name for name in new.sd["bucketCols"] if name not in names]
    if unknown and columns:
        raise InvalidOperationError(f"Bucket columns of {new.name} are not among its columns: {', '.join(unknown)}")
    if is_view(new):
        return
    same_keys = old.partition_key_names == new.partition_key_names
    if not same_keys and not is_true(context.get("allow_partition_key_change")):
        raise InvalidOperationError("partition keys can not be changed.")
    incompatible = column_types.incompatible_columns(old.sd["cols"], columns)
    # Iceberg finds columns by id, so a dropped or moved column that changes the types by position does no harm. Hive
    # exempts Iceberg's serde, which PyIceberg does not name.
    if incompatible and check_types and not is_view(old) and not is_iceberg(new):
        raise InvalidOperationError(
            "The following columns have types incompatible with the existing columns in their "
            f"respective positions : {','.join(incompatible)}"
        )
