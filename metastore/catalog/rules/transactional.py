"""Transactional tables: the allowed values of ``transactional`` and ``transactional_properties``, and their changes.

Holds for the default catalog only. Source: CAT-V1 to CAT-V13.
"""

from collections.abc import Iterable
from dataclasses import replace

from metastore.acid.names import NO_BUCKET, is_hidden, parse_file
from metastore.acid.table_kinds import (
    INSERT_ONLY,
    PROPERTIES,
    TRANSACTIONAL,
    is_full_acid,
    is_insert_only,
    is_transactional,
)
from metastore.catalog.model import Parameters, Table, TableType
from metastore.catalog.rules.names import is_transactional_name
from metastore.errors import MetaError

BUCKETING = "bucketing_version"  # The value is 2 or else 1.
# A converted table's files count as written by ids below this (Hive: RemoteOperations of the original files).
CONVERSION_SEED = 10_000_000

_ACID_INPUT = "org.apache.hadoop.hive.ql.io.orc.OrcInputFormat"
_ACID_OUTPUT = "org.apache.hadoop.hive.ql.io.orc.OrcOutputFormat"


def by_default(table: Table) -> Table:
    """Return the table as full ACID if it is managed, can be so, and does not say otherwise (hive.create.as.acid)."""
    says_so = any(key.lower() == TRANSACTIONAL for key in table.parameters)
    if says_so or table.type != TableType.MANAGED or not _is_acid_format(table) or table.sd["sortCols"]:
        return table
    return replace(table, parameters={**table.parameters, TRANSACTIONAL: "true"})


def validated_new(table: Table) -> Table:
    """Return the table to create, with its transactional parameters in their stored spelling. Raises: MetaError."""
    wanted, parameters = _taken_out(table.parameters)
    if wanted is None or wanted.lower() == "false":
        return replace(table, parameters=parameters)
    return _made_transactional(replace(table, parameters=parameters), wanted)


def validated_altered(old: Table, new: Table) -> Table:
    """Return the altered table, checked as by ``validated_new``. Raises: MetaError if the change is not allowed."""
    if not new.parameters:
        return new
    wanted, parameters = _taken_out(new.parameters)
    new = replace(new, parameters=parameters)
    if is_transactional(old.parameters):
        if wanted is None or wanted.lower() != "true":
            if is_insert_only(old.parameters):
                return new
            raise MetaError(f"{old.name}: TBLPROPERTIES with 'transactional'='true' cannot be unset")
        _require_same_buckets(old, new)
        if new.type == TableType.EXTERNAL:
            raise MetaError(f"{old.name} cannot become an external table because it is transactional")
        before, after = old.parameters.get(PROPERTIES), parameters.get(PROPERTIES)
        if after is not None and after.lower() != before and not is_insert_only(old.parameters):
            raise MetaError(
                f"{old.name}: TBLPROPERTIES with 'transactional_properties' cannot be altered after the "
                "table is created"
            )
        kept = after.lower() if after is not None else before
        return replace(new, parameters={**parameters, TRANSACTIONAL: "true"} | ({PROPERTIES: kept} if kept else {}))
    if wanted is None or wanted.lower() == "false":
        return new
    return _made_transactional(new, wanted)


def require_name(table: Table) -> None:
    """Raise MetaError for a transactional table whose name would be ambiguous in a list of write ids."""
    if is_transactional(table.parameters) and not is_transactional_name(table.name):
        raise MetaError(
            f"{table.name} cannot be transactional: a transactional table and its database have no . and no : in their "
            "names, which part names in Hive's lists of write ids. Choose another name, or 'transactional'='false'"
        )


def is_conversion(old: Table, new: Table) -> bool:
    """Return True if the change makes a plain table transactional."""
    return is_transactional(new.parameters) and not is_transactional(old.parameters)


def foreign_file(paths: Iterable[str]) -> str | None:
    """Return the first data file whose name is not one of Hive's own writers, so that it belongs to no bucket."""
    for path in paths:
        *directories, name = path.split("/")
        known = parse_file(name)
        is_named = known.is_original and known.bucket != NO_BUCKET
        if not is_named and not any(map(is_hidden, (*directories, name))):
            return path
    return None


def _require_same_buckets(old: Table, new: Table) -> None:
    """Raise MetaError for a change of buckets.

    Hive and Trino skip files by bucket and would miss rows of the old ones.
    """
    before, after = (table.parameters.get(BUCKETING, "1") for table in (old, new))
    if old.sd["bucketCols"] and (before == "2") != (after == "2"):
        raise MetaError(
            f"{old.name}: its rows are in other buckets than 'bucketing_version'='{after}' says, as they were written "
            f"with '{before}': CREATE another table with '{after}' and INSERT the rows there"
        )
    declared = _buckets(new)
    if declared and declared != _buckets(old):
        count, columns = declared
        by = ", ".join(f"{name} {kind}" for name, kind in columns)
        raise MetaError(
            f"{old.name}: CLUSTERED BY ({by}) INTO {count} BUCKETS says other buckets than those that its rows "
            "have been written to: CREATE another table with it and INSERT the rows there"
        )
    if is_full_acid(old.parameters) and new.sd["sortCols"] and not old.sd["sortCols"]:
        raise _sorted(new)


def _buckets(table: Table) -> tuple[int, list[tuple[str, str]]] | None:
    """Return CLUSTERED BY, with the types by which values are hashed; None: rows may be in any bucket."""
    count, types = table.sd["numBuckets"], {column["name"]: column["type"] for column in table.sd["cols"]}
    columns = [(name, types.get(name, "")) for name in table.sd["bucketCols"]]
    return (count, columns) if columns and count > 0 else None


def _sorted(table: Table) -> MetaError:
    return MetaError(f"{table.name}: ACID tables cannot be sorted (SORTED BY)")


def _is_acid_format(table: Table) -> bool:
    return (table.sd.get("inputFormat"), table.sd.get("outputFormat")) == (_ACID_INPUT, _ACID_OUTPUT)


def _taken_out(parameters: Parameters) -> tuple[str | None, Parameters]:
    """Return the value under ``transactional`` in any case, and the other parameters."""
    wanted = next((value for key, value in parameters.items() if key.lower() == TRANSACTIONAL), None)
    return wanted, {key: value for key, value in parameters.items() if key.lower() != TRANSACTIONAL}


def _made_transactional(table: Table, wanted: str) -> Table:
    if wanted.lower() != "true":
        raise MetaError(f"{table.name}: 'transactional' may only have value 'true', not {wanted!r}")
    if table.type == TableType.EXTERNAL:
        raise MetaError(f"{table.name} cannot be declared transactional because it's an external table")
    properties = table.parameters.get(PROPERTIES, "default").lower()
    if properties not in ("default", INSERT_ONLY):
        raise MetaError(
            f"Invalid transactional properties specified for {table.name}: {properties!r}; "
            "allowed are 'default' and 'insert_only'"
        )
    if properties == "default":
        if not _is_acid_format(table):
            raise MetaError(f"{table.name}: the table must be stored using an ACID compliant format (such as ORC)")
        if table.sd["sortCols"]:
            raise _sorted(table)
    return replace(table, parameters={**table.parameters, TRANSACTIONAL: "true", PROPERTIES: properties})
