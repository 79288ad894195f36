"""SHOW CREATE TABLE: the statement, in Spark's SQL, that makes a table of the same definition.

Rule: the statement has everything that CREATE TABLE takes, except what belongs to this one table: the metastore's usual
place for it, statistics, and the time of its change.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from metastore.acid_tables.serde_storage import CLASSES
from metastore.acid_tables.table import quoted
from metastore.client.constraints import all_constraints
from metastore.ids import TableName
from metastore.planner.call import Answer, PlannerCall
from metastore.planner.tables import acid_table

_PLAIN = re.compile(r"[a-z_][a-z0-9_]*")
_OWN_PROPERTIES = re.compile(
    r"comment|transient_lastDdlTime|last_modified_\w+|num(Files|Rows|Partitions|FilesErasureCoded)|rawDataSize|totalSize"
    r"|COLUMN_STATS_ACCURATE|STATS_GENERATED\w*|EXTERNAL|spark\.sql\..*"
)
_DESCENDING = "acid.descending"
"""The property that stands for DESC in SORTED BY, for which Spark has no words."""
_LINES = ",\n  "
_GIVEN = {"bucketing_version": "2"}
"""Properties that every new table gets."""
_ESCAPES = {"\\": "\\\\", "'": "\\'", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\0": "\\0"} | {
    chr(code): f"\\u{code:04x}" for code in range(1, 32) if chr(code) not in "\n\r\t"
}


def show_create(call: PlannerCall) -> Answer:
    """Return the CREATE TABLE of a transactional table."""
    name = acid_table(call.client, call.body.db_and_table()).name
    table = call.client.get_table(name.db, name.table)
    usual_place = f"{call.client.get_database(name.db).locationUri.rstrip('/')}/{name.table}"
    return {"statement": statement(name, table, all_constraints(call.client, name), usual_place)}


def statement(name: TableName, table: Any, constraints: Any, usual_place: str) -> str:
    """Return the statement that creates a table.

    ``table``: as the metastore describes it; ``constraints``: the table's, None if the metastore has no constraints.
    """
    sd, keys = table.sd, table.partitionKeys or ()
    items = [*_columns((*sd.cols, *keys), constraints), *_named_constraints(constraints)]
    clauses = [f"CREATE TABLE {_identifier(name.db)}.{_identifier(name.table)} (\n  {_LINES.join(items)})"]
    if keys:
        clauses.append(f"PARTITIONED BY ({_names(key.name for key in keys)})")
    descending: list[str] = []
    if sd.numBuckets > 0 and sd.bucketCols:
        sort = f" SORTED BY ({_names(one.col for one in sd.sortCols)})" if sd.sortCols else ""
        descending = [one.col for one in sd.sortCols or () if not one.order]
        clauses.append(f"CLUSTERED BY ({_names(sd.bucketCols)}){sort} INTO {sd.numBuckets} BUCKETS")
    clauses += _storage(sd)
    if sd.location.rstrip("/") != usual_place:
        clauses.append(f"LOCATION {_text(sd.location)}")
    if comment := table.parameters.get("comment"):
        clauses.append(f"COMMENT {_text(comment)}")
    kept = {
        key: value
        for key, value in table.parameters.items()
        if not _OWN_PROPERTIES.fullmatch(key) and _GIVEN.get(key) != value
    }
    if descending:
        kept[_DESCENDING] = ", ".join(descending)
    clauses.append(f"TBLPROPERTIES (\n  {_properties(kept, _LINES)})")
    return "\n".join(clauses) + "\n"


def _columns(columns: Sequence[Any], constraints: Any) -> Iterator[str]:
    not_null = {one.column_name for one in _enabled(constraints, "notNullConstraints")}
    defaults = {one.column_name: one.default_value for one in _enabled(constraints, "defaultConstraints")}
    for column in columns:
        words = [_identifier(column.name), column.type if "<" in column.type else column.type.upper()]
        if column.name in not_null:
            words.append("NOT NULL")
        if column.name in defaults:
            words.append(f"DEFAULT {defaults[column.name]}")
        if column.comment:
            words.append(f"COMMENT {_text(column.comment)}")
        yield " ".join(words)


def _named_constraints(constraints: Any) -> Iterator[str]:
    for rows in _by_name(constraints, "primaryKeys", lambda one: one.pk_name):
        yield _constraint(rows[0].pk_name, f"PRIMARY KEY ({_names(one.column_name for one in rows)})", rows[0])
    for rows in _by_name(constraints, "uniqueConstraints", lambda one: one.uk_name):
        yield _constraint(rows[0].uk_name, f"UNIQUE ({_names(one.column_name for one in rows)})", rows[0])
    for rows in _by_name(constraints, "foreignKeys", lambda one: one.fk_name):
        parent = f"{_identifier(rows[0].pktable_db)}.{_identifier(rows[0].pktable_name)}"
        there = _names(one.pkcolumn_name for one in rows)
        here = _names(one.fkcolumn_name for one in rows)
        yield _constraint(rows[0].fk_name, f"FOREIGN KEY ({here}) REFERENCES {parent} ({there})", rows[0])
    for check in constraints.checkConstraints or () if constraints else ():
        yield _constraint(check.dc_name, f"CHECK ({check.check_expression})", check)


def _constraint(name: str, what: str, row: Any) -> str:
    """Return a constraint with the properties that are unusual for its kind: keys are not enforced, conditions are."""
    is_checked = what.startswith("CHECK")
    enforced = "" if row.enable_cstr or not is_checked else " NOT ENFORCED"
    return f"CONSTRAINT {_identifier(name)} {what}{enforced}{' RELY' if row.rely_cstr else ''}"


def _enabled(constraints: Any, kind: str) -> list[Any]:
    return [one for one in getattr(constraints, kind, None) or () if one.enable_cstr]


def _by_name(constraints: Any, kind: str, name: Callable[[Any], str]) -> Iterable[list[Any]]:
    """Return the rows of keys, one list for each key, in the order of its columns."""
    keys: dict[str, list[Any]] = {}
    for row in sorted(getattr(constraints, kind, None) or (), key=lambda one: int(one.key_seq)):
        keys.setdefault(name(row), []).append(row)
    return keys.values()


def _storage(sd: Any) -> Iterator[str]:
    serde, properties = sd.serdeInfo.serializationLib, dict(sd.serdeInfo.parameters or {})
    for stored_as, classes in CLASSES.items():
        is_usual = properties.items() <= {"serialization.format": "1"}.items()
        if is_usual and classes == (sd.inputFormat, sd.outputFormat, serde):
            yield f"STORED AS {stored_as.upper()}"
            return
    with_properties = f" WITH SERDEPROPERTIES ({_properties(properties)})" if properties else ""
    yield f"ROW FORMAT SERDE {_text(serde)}{with_properties}"
    yield f"STORED AS INPUTFORMAT {_text(sd.inputFormat)} OUTPUTFORMAT {_text(sd.outputFormat)}"


def _properties(properties: Mapping[str, str], between: str = ", ") -> str:
    return between.join(f"{_text(key)} = {_text(value)}" for key, value in sorted(properties.items()))


def _names(names: Iterable[str]) -> str:
    return ", ".join(map(_identifier, names))


def _identifier(name: str) -> str:
    return name if _PLAIN.fullmatch(name) else quoted(name)


def _text(text: str) -> str:
    escaped = "".join(_ESCAPES.get(character, character) for character in text)
    return f"'{escaped}'"
