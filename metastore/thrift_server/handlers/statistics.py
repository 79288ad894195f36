"""RPCs about column statistics."""

from __future__ import annotations

from typing import Any

from thrift.Thrift import TApplicationException

from metastore.catalog.model import ColumnStatistics
from metastore.catalog.service.statistics import HIVE, NOBODY, Seen, StatisticsService
from metastore.errors import InvalidInputError, MetaError
from metastore.ids import TableName
from metastore.partition_names import parse_name
from metastore.thrift_gen.hive_metastore import ttypes
from metastore.thrift_server.convert.catalog import (
    column_statistics,
    required_struct,
    seen_of,
    statistics_from_thrift,
    statistics_to_thrift,
    table_name_of,
)
from metastore.thrift_server.dispatch.call import Call
from metastore.thrift_server.responses.streamed import InPieces
from metastore.thrift_server.wire.protocol import MapEntry


class StatisticsHandlers:
    """Statistics, in the old and the new form of calls. Clients before 4.0 name no engine: they are Hive's."""

    def __init__(self, statistics: StatisticsService) -> None:
        """Prepare the handlers. ``statistics``: does the work."""
        self._statistics = statistics

    # Write

    def update_table_column_statistics(self, _call: Call, statistics: ttypes.ColumnStatistics) -> bool:
        """Replace statistics of a table's columns."""
        return self._update([statistics], None, merge=False)

    def update_partition_column_statistics(self, _call: Call, statistics: ttypes.ColumnStatistics) -> bool:
        """Replace statistics of a partition's columns."""
        return self._update([statistics], None, merge=False)

    def update_table_column_statistics_req(
        self, _call: Call, request: ttypes.SetPartitionsStatsRequest
    ) -> ttypes.SetPartitionsStatsResponse:
        """Replace statistics of a table's columns."""
        return self._update_one(request)

    def update_partition_column_statistics_req(
        self, _call: Call, request: ttypes.SetPartitionsStatsRequest
    ) -> ttypes.SetPartitionsStatsResponse:
        """Replace statistics of a partition's columns."""
        return self._update_one(request)

    def set_aggr_stats_for(self, _call: Call, request: ttypes.SetPartitionsStatsRequest) -> bool:
        """Replace or join statistics of a table, or of several partitions."""
        return self._update(
            _of_table_or_partitions(request.colStats or []),
            request.engine,
            merge=bool(request.needMerge),
            by=seen_of(request),
        )

    def _update_one(self, request: Any) -> Any:
        if len(request.colStats) != 1:
            raise InvalidInputError("Only one stats object expected")
        if request.needMerge:
            raise InvalidInputError("Merge is not supported for non-aggregate stats")
        return ttypes.SetPartitionsStatsResponse(
            self._update(request.colStats, request.engine, merge=False, by=seen_of(request))
        )

    def _update(self, list_any: list[Any], engine: str | None, *, merge: bool, by: Seen = NOBODY) -> bool:
        by_table: dict[TableName, list[ColumnStatistics]] = {}
        for sent in list_any:
            description = required_struct(required_struct(sent, "column statistics").statsDesc, "statsDesc")
            if not description.isTblLevel:
                _partition(description.partName)
            name = table_name_of(description.dbName, description.tableName, description.catName)
            by_table.setdefault(name, []).extend(statistics_from_thrift(sent, engine))
        if len(by_table) > 1:
            raise MetaError("All statistics of one request must belong to one table")
        for name, statistics in by_table.items():
            self._statistics.update(name, statistics, merge=merge, by=by)
        return True

    # Read

    def get_table_column_statistics(
        self, _call: Call, db: str | None, table: str | None, column: str | None
    ) -> ttypes.ColumnStatistics:
        """Return one column of a table."""
        return self._one(table_name_of(db, table), "", column)

    def get_partition_column_statistics(
        self, _call: Call, db: str | None, table: str | None, partition: str | None, column: str | None
    ) -> ttypes.ColumnStatistics:
        """Return one column of a partition."""
        return self._one(table_name_of(db, table), _partition(partition), column)

    def get_table_statistics_req(self, _call: Call, request: ttypes.TableStatsRequest) -> ttypes.TableStatsResult:
        """Return statistics of a table's columns that have any."""
        name = table_name_of(request.dbName, request.tblName, request.catName)
        statistics, is_exact = self._statistics.get(
            name, [""], request.colNames or [], request.engine or HIVE, seen_of(request)
        )
        return ttypes.TableStatsResult(statistics_to_thrift(statistics), is_exact)

    def get_partitions_statistics_req(self, _call: Call, request: ttypes.PartitionsStatsRequest) -> InPieces:
        """Return statistics of several partitions; partitions without statistics are left out."""
        name = table_name_of(request.dbName, request.tblName, request.catName)
        found, is_exact = self._statistics.of_partitions(
            name, request.partNames or [], request.colNames or [], request.engine or HIVE, seen_of(request)
        )
        return InPieces(
            lambda entries: ttypes.PartitionsStatsResult(dict(entries), is_exact),
            MapEntry(ttypes.ColumnStatisticsObj),
            found.count,
            found,
        )

    def get_aggr_stats_for(self, _call: Call, request: ttypes.PartitionsStatsRequest) -> ttypes.AggrStats:
        """Aggregate statistics of several partitions."""
        name = table_name_of(request.dbName, request.tblName, request.catName)
        if not request.colNames or not request.partNames:
            return ttypes.AggrStats([], 0)
        statistics, complete, is_exact = self._statistics.aggregate(
            name, request.partNames, request.colNames, request.engine or HIVE, seen_of(request)
        )
        return ttypes.AggrStats(statistics_to_thrift(statistics), complete, is_exact)

    def _one(self, name: TableName, partition: str, column: str | None) -> Any:
        statistics, _ = self._statistics.get(name, [partition], [column or ""], HIVE)
        if not statistics:  # Hive's answer is empty, and its clients report it so.
            raise TApplicationException(TApplicationException.MISSING_RESULT, "unknown result")
        return column_statistics(name, statistics, partition)

    # Delete

    def delete_table_column_statistics(
        self, _call: Call, db: str | None, table: str | None, column: str | None, engine: str | None
    ) -> bool:
        """Remove the statistics of a column, or of all columns."""
        self._statistics.delete(_input(db, table), "", None if column is None else [column], engine or HIVE)
        return True

    def delete_partition_column_statistics(
        self,
        _call: Call,
        db: str | None,
        table: str | None,
        partition: str | None,
        column: str | None,
        engine: str | None,
    ) -> bool:
        """Remove the statistics of a partition's column, or of all its columns."""
        self._statistics.delete(
            _input(db, table), _partition(partition), None if column is None else [column], engine or HIVE
        )
        return True

    def delete_column_statistics_req(self, _call: Call, request: ttypes.DeleteColumnStatisticsRequest) -> bool:
        """Remove the statistics of columns of the table, or of partitions."""
        name = table_name_of(request.db_name, request.tbl_name, request.cat_name)
        for partition in [""] if request.tableLevel or not request.part_names else request.part_names:
            self._statistics.delete(name, partition, request.col_names, request.engine or HIVE)
        return True


def _partition(name: str | None) -> str:
    """Return the name of a partition. Raises: MetaError for what is none."""
    if not name or not parse_name(name):
        raise MetaError(f"Partition name is invalid: {name}. Write it as key=value, with a slash between the keys")
    return name


def _input(db: str | None, table: str | None) -> TableName:
    if table is None:
        raise InvalidInputError("The name of the table is missing")
    return table_name_of(db, table)


def _of_table_or_partitions(statistics: list[ttypes.ColumnStatistics]) -> list[ttypes.ColumnStatistics]:
    """Return the statistics. Raises: MetaError unless they are a single table's, or of different partitions."""
    partitions = [each.statsDesc.partName for each in statistics if not each.statsDesc.isTblLevel]
    if len(partitions) < len(statistics) > 1:
        raise MetaError(f"Expecting only 1 ColumnStatistics for table's column stats, but find {len(statistics)}")
    if len(set(partitions)) < len(partitions):
        raise MetaError("A partition is named twice among the statistics to set")
    return statistics
