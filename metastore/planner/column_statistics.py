"""Column statistics for an engine's optimizer: the stored ones that it may use, and the way to new ones.

Rule: an optimizer gets estimates. The metastore leaves out those of a state that the statement's snapshot does not
have: of later writes, and of aborted ones. Those of an earlier state count, and those of an unknown state. The engine
counts new ones, with a query that is made here: they are of the write ids that the table had before the query, and
whole if it has the same ones after it.
"""

import base64
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import islice
from typing import Any

from metastore.acid.snapshots import ValidWriteIdList
from metastore.acid_tables.listing import Directory
from metastore.acid_tables.table import AcidTable, HiveColumn, quoted
from metastore.compaction.statistics.rules import FRACTIONS, TEXTS, WHOLE, Whole, base_type, described, statistics
from metastore.errors import InvalidInputError
from metastore.planner.call import Answer, PlannerCall
from metastore.planner.read_transactions import reading
from metastore.planner.tables import acid_table
from metastore.thrift_server.convert.structs import struct_from_json, struct_to_json

ALL = "*"
NOTE = "note_statistics"
"""The call that takes the row of the query."""

_EPOCH = datetime.fromtimestamp(0, UTC)
_RANGE = {"low": "min({c})", "high": "max({c})", "distinct": "approx_count_distinct({c})"}
_FINITE = "IF(isnan({c}) OR abs({c}) = double('infinity'), NULL, {c})"
_SECONDS = "unix_seconds(from_utc_timestamp({range}, current_timezone()))"  # Seconds are those of the local clock.
_LENGTHS = {"length": "coalesce(sum({length}({c})), 0)", "longest": "coalesce(max({length}({c})), 0)"}
_OF_TEXTS = {name: text.replace("{length}", "length") for name, text in _LENGTHS.items()} | {
    "distinct": _RANGE["distinct"]
}
_OF_FRACTIONS = {**_RANGE, "low": f"min({_FINITE})", "high": f"max({_FINITE})"}
_MEASURES: Mapping[str, Mapping[str, str]] = {
    **dict.fromkeys((*WHOLE, "decimal"), _RANGE),
    **dict.fromkeys(FRACTIONS, _OF_FRACTIONS),
    **dict.fromkeys(TEXTS, _OF_TEXTS),
    "binary": {name: text.replace("{length}", "octet_length") for name, text in _LENGTHS.items()},
    "boolean": {"trues": "count_if({c})"},
    "date": {**_RANGE, "low": "unix_date(min({c}))", "high": "unix_date(max({c}))"},
    "timestamp": {**_RANGE, **{name: _SECONDS.replace("{range}", _RANGE[name]) for name in ("low", "high")}},
}
"""The query's measures of a column, by its type; nulls for all. Missing measures are 0 or NULL."""
_FIELDS = Whole._fields[1:]
_NUMBERS = frozenset(_FIELDS) - {"low", "high"}


def query(call: PlannerCall, table: AcidTable, names: Sequence[str]) -> Answer:
    """Return the query of an ANALYZE of columns, of all with ``*``, and the call that takes its row.

    Raises: InvalidInputError for a column that has no statistics.
    """
    columns = _columns(table, names)
    place = (call.body.text("catalog", "spark_catalog"), table.name.db, table.name.table)
    measures = ["count(*)", *(measure for column in columns for measure in _measures(column))]
    selected = ", ".join(f"CAST({measure} AS STRING)" for measure in measures)
    return {
        "sql": f"SELECT {selected} FROM {'.'.join(map(quoted, place))}",
        "call": NOTE,
        "arguments": {
            "table": f"{table.name.db}.{table.name.table}",
            "columns": [column.name for column in columns],
            "write_ids": _write_ids(call, table).format(),
        },
    }


def note_statistics(call: PlannerCall) -> Answer:
    """Store the result of an ANALYZE query."""
    body, table = call.body, acid_table(call.client, call.body.table())
    columns, seen = body.texts("columns"), ValidWriteIdList.parse(body.text("write_ids"))
    wanted = {column.name: column.type for column in _columns(table, columns)}
    count, *texts = body.values("row") or [None]
    try:
        rows, said = int(count), iter(texts)
        found = {column: _whole(kind, rows, list(islice(said, len(_FIELDS)))) for column, kind in wanted.items()}
    except (ArithmeticError, TypeError, ValueError):
        raise InvalidInputError(f"{body.place}row is not that of the query for {', '.join(columns)}.") from None
    is_same = _write_ids(call, table) == seen
    types, name = call.client.types, table.name
    objects = [
        types.ColumnStatisticsObj(column, wanted[column], struct_from_json(types.ColumnStatisticsData, data))
        for column, data in statistics(wanted, found, rows).items()
    ]
    of_table = types.ColumnStatisticsDesc(True, name.db, name.table, catName=name.catalog)  # noqa: FBT003
    call.client.update_table_column_statistics_req(
        types.SetPartitionsStatsRequest(
            [types.ColumnStatistics(of_table, objects)],
            writeId=-1 if is_same else seen.highest_valid,
            validWriteIdList=seen.format() if is_same else None,
        )
    )
    return {}


def estimates(
    call: PlannerCall, table: AcidTable, seen: ValidWriteIdList, read: Sequence[Directory], names: Sequence[str]
) -> Answer:
    """Return estimates for an optimizer: of the table; else of the partitions that are read, if each has some.

    ``rows``: the number of rows to which the null counts refer; None: those that are read.
    """
    types, name, write_ids = call.client.types, table.name, seen.format()
    wanted = {column.name: column.type for column in table.columns if column.name in names and described(column.type)}
    of_table = types.TableStatsRequest(name.db, name.table, list(wanted), name.catalog, write_ids)
    found = call.client.get_table_statistics_req(of_table).tableStats
    rows = table.parameters.get("numRows", "")
    known = {each.colName: {**_estimate(each), "rows": int(rows) if rows.isdecimal() else None} for each in found}
    left = [column for column in wanted if column not in known]
    partitions = [directory.partition for directory in read]
    if left and table.partition_keys and partitions:
        of_all = types.PartitionsStatsRequest(name.db, name.table, left, partitions, name.catalog, write_ids)
        of_all.colNames = [each.colName for each in call.client.get_aggr_stats_for(of_all).colStats]
        joined = call.client.get_aggr_stats_for(of_all)
        if joined.partsFound == len(partitions):
            known |= {each.colName: {**_estimate(each), "rows": None} for each in joined.colStats}
    return known


def _columns(table: AcidTable, names: Sequence[str]) -> list[HiveColumn]:
    """Return the columns of these names. Raises: InvalidInputError."""
    if ALL in names:
        return [column for column in table.columns if described(column.type)]
    by_name = {column.name: column for column in table.columns}
    for name in names:
        if name.lower() not in by_name:
            raise InvalidInputError(f"{table.name} has no column {name} in its files: statistics are of those columns.")
        if not described(by_name[name.lower()].type):
            kind = by_name[name.lower()].type
            raise InvalidInputError(f"Column {name} of {table.name} is of type {kind}, which has no statistics.")
    return [by_name[name.lower()] for name in dict.fromkeys(names)]


def _measures(column: HiveColumn) -> list[str]:
    measures = {"nulls": "count(*) - count({c})", **_MEASURES[base_type(column.type)]}
    texts = [measures.get(field, "0" if field in _NUMBERS else "NULL") for field in _FIELDS]
    return [text.replace("{c}", quoted(column.name)) for text in texts]


def _whole(hive_type: str, rows: int, texts: Sequence[str | None]) -> Whole:
    said = dict(zip(_FIELDS, texts, strict=True))
    values: dict[str, Any] = {field: int(text or 0) if field in _NUMBERS else text for field, text in said.items()}
    if base_type(hive_type) == "decimal":
        scale = int(hive_type.partition(",")[2].rstrip(") ") or 0)
        for bound in ("low", "high"):
            values[bound] = values[bound] and str(int(Decimal(values[bound]).scaleb(scale)))
    return Whole(rows, **values)


def _write_ids(call: PlannerCall, table: AcidTable) -> ValidWriteIdList:
    text = f"{table.name.db}.{table.name.table}"
    with reading(call, "analyze") as txn:
        return txn.valid_write_ids([text], no_others=True)[text]


def _estimate(known: Any) -> Answer:
    [(kind, values)] = struct_to_json(known.statsData).items()
    distinct, low, high = values.get("numDVs"), values.get("lowValue"), values.get("highValue")
    if kind == "booleanStats":
        there = [text for text, count in (("false", values["numFalses"]), ("true", values["numTrues"])) if count]
        distinct, low, high = len(there), next(iter(there), None), next(reversed(there), None)
    return {
        "distinct": distinct,
        "nulls": values["numNulls"],
        "low": _bound(known.colType, low),
        "high": _bound(known.colType, high),
        "average_length": values.get("avgColLen"),
        "longest": values.get("maxColLen"),
    }


def _bound(hive_type: str, value: Any) -> str | None:
    """Return a bound as partitions spell such a value; None if it has no spelling."""
    if isinstance(value, dict):
        if "unscaled" in value:
            unscaled = int.from_bytes(base64.b64decode(value["unscaled"]), "big", signed=True)
            return format(Decimal(unscaled).scaleb(-value["scale"]), "f")
        [value] = value.values()
    if value is None:
        return None
    try:
        if base_type(hive_type) == "date":
            return (_EPOCH + timedelta(days=value)).date().isoformat()
        if base_type(hive_type) == "timestamp":
            return (_EPOCH + timedelta(seconds=value)).strftime("%Y-%m-%d %H:%M:%S")
    except OverflowError:
        return None
    return str(value)
