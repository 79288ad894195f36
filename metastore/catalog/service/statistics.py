"""Column statistics of tables and partitions. Source: CAT-S1, CAT-S2, CAT-S4."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import datetime
from typing import NamedTuple

from metastore.acid.snapshots import ValidWriteIdList
from metastore.acid.table_kinds import is_transactional
from metastore.catalog.events import rules as events
from metastore.catalog.events.store import SILENT, CatalogEvents
from metastore.catalog.model import ColumnStatistics, Json, Parameters, StatisticsOrigin, Table
from metastore.catalog.rules import statistics as rules
from metastore.catalog.store import statistics as store
from metastore.catalog.store import tables
from metastore.catalog.store.statistics_wires import StatisticsList
from metastore.db.engine import Database as Postgres
from metastore.db.engine import PgTx
from metastore.db.pieces import Pieces
from metastore.errors import InvalidObjectError, MetaError, NoSuchObjectError
from metastore.ids import TableName
from metastore.partition_names import canonical

HIVE = "hive"
"""The engine whose statistics a compaction renews."""


class Seen(NamedTuple):
    """The transaction that stores or asks for statistics of a transactional table: its snapshot and its write id."""

    write_ids: ValidWriteIdList | None = None
    own: int | None = None


NOBODY = Seen()


@dataclass(frozen=True)
class StatisticsService:
    """The RPCs about column statistics."""

    db: Postgres
    events: CatalogEvents = SILENT

    def update(
        self, name: TableName, statistics: Sequence[ColumnStatistics], *, merge: bool = False, by: Seen = NOBODY
    ) -> None:
        """Store statistics of a table and its partitions, or join them with the stored ones (``merge``).

        Serialises on: the table's row.
        Raises: NoSuchObjectError without table or partition (InvalidObjectError without a partition's table), MetaError
        for an unknown column of the table.
        """
        statistics = [replace(statistic, partition=canonical(statistic.partition)) for statistic in statistics]
        with self.db.begin() as pg:
            table = _locked(pg, name, of_partition=any(statistic.partition for statistic in statistics))
            _require_columns(table, statistics)
            kinds = {column["name"]: column["type"] for column in table.sd["cols"]}
            statistics = [replace(each, type=kinds.get(each.column, each.type)) for each in statistics]
            if is_transactional(table.parameters):
                origin = rules.origin(by.own, by.write_ids)
                statistics = [replace(statistic, origin=origin) for statistic in statistics]
            if merge:
                statistics = _merged(pg, table, statistics, by.write_ids)
            now = int(pg.now.timestamp())
            statistics = [replace(statistic, last_analyzed=now) for statistic in statistics]
            store.upsert_statistics(pg, table, statistics)
            parameters = self._mark(pg, table, statistics)
            table = replace(table, parameters=parameters.get("", table.parameters))
            self.events.record(pg, events.statistics_updated, table, statistics, parameters)

    def get(
        self, name: TableName, partitions: Sequence[str], columns: Iterable[str], engine: str, by: Seen = NOBODY
    ) -> tuple[list[ColumnStatistics], bool | None]:
        """Return stored statistics of the table (partition "") or partitions, and whether they are exact for a reader.

        A reader that sends its snapshot of a transactional table gets only statistics that fit it. None: it sends no
        snapshot, or the table is not transactional.
        Raises: NoSuchObjectError without the table.
        """
        wanted = {column.strip().lower() for column in columns}
        names = {canonical(partition): partition for partition in partitions}
        rows = self.db.once(store.SELECT_STATISTICS, (list(names), list(wanted), engine, *name))
        if not rows:
            raise NoSuchObjectError(f"{name} table not found")
        transactional, has_keys, *_ = rows[0]
        found = [
            ColumnStatistics(
                column, kind, data, names[partition], by_engine, analyzed, StatisticsOrigin(write_id, is_whole)
            )
            for _, _, column, kind, data, partition, by_engine, analyzed, write_id, is_whole in rows
            if column is not None
        ]
        seen = by.write_ids if transactional else None
        if seen is not None:
            found = [each for each in found if rules.is_estimate(each.origin, seen)]
        is_all = 0 < len(found) == len(wanted) * len(names) and not (has_keys and "" in names)  # More may be added.
        return found, None if seen is None else is_all and rules.are_exact((each.origin for each in found), seen)

    def of_partitions(
        self, name: TableName, partitions: Sequence[str], columns: Iterable[str], engine: str, by: Seen = NOBODY
    ) -> tuple[Pieces[bytes], bool | None]:
        """Return statistics of partitions as ``get`` does, but as bytes for clients."""
        wanted = list({column.strip().lower() for column in columns})
        names = {canonical(partition): partition for partition in partitions}
        listed = StatisticsList(name, names, wanted, engine)
        if by.write_ids is None:
            found = listed.read(self.db)
            if not found.count and not self.db.once(tables.SELECT_TABLE, name):
                raise NoSuchObjectError(f"{name} table not found")
            return found, None
        with ExitStack() as opened:
            pg = opened.enter_context(self.db.begin(snapshot=True))
            known = listed.origins(pg)
            if known is None:
                raise NoSuchObjectError(f"{name} table not found")
            transactional, origins = known
            seen = by.write_ids if transactional else None
            if seen is None:
                return listed.within(pg, opened), None
            kept = {origin: count for origin, count in origins.items() if rules.is_estimate(origin, seen)}
            is_all = 0 < sum(kept.values()) == len(wanted) * len(names)
            return listed.only(kept).within(pg, opened), is_all and rules.are_exact(kept, seen)

    def aggregate(
        self, name: TableName, partitions: Sequence[str], columns: Sequence[str], engine: str, by: Seen = NOBODY
    ) -> tuple[list[ColumnStatistics], int, bool | None]:
        """Aggregate statistics of several partitions.

        Return also how many have all of the columns, and exactness as ``get``.
        Raises: NoSuchObjectError without the table.
        """
        wanted = [column.strip().lower() for column in columns]
        names = list({canonical(partition) for partition in partitions})
        rows = self.db.once(store.SELECT_BY_COLUMN, (names, wanted, engine, *name))
        if not rows:
            raise NoSuchObjectError(f"{name} table not found")
        described = [
            rules.DescribedColumn(column, kind, partitions_of, data, list(map(StatisticsOrigin, write_ids, whole)))
            for _, column, kind, partitions_of, data, write_ids, whole in rows
            if column is not None
        ]
        seen = by.write_ids if rows[0][0] else None
        if seen is None:
            return *rules.aggregated(described, wanted), None
        described = [each.seen(seen) for each in described]
        statistics, complete = rules.aggregated(described, wanted)
        is_exact = rules.are_exact((origin for each in described for origin in each.origins), seen)
        return statistics, complete, is_exact and complete == len(names)

    def columns(self, name: TableName, partition: str) -> list[str]:
        """Return the columns that have statistics of Hive's. Raises: NoSuchObjectError without the table."""
        with self.db.begin(durable=False) as pg:
            table = tables.select_table(pg, name)
            if table is None:
                raise NoSuchObjectError(f"{name} table not found")
            held = store.select_statistics_of(pg, table, canonical(partition), HIVE)
            return [statistic.column for statistic in held]

    def renew(
        self, name: TableName, partition: str, statistics: Mapping[str, Json], as_of: datetime, seen: ValidWriteIdList
    ) -> list[str]:
        """Replace Hive's statistics that are older than ``as_of`` by those of that time.

        Return the columns that were replaced.

        Statistics that were removed or analyzed anew since then stay so. The parameter that marks statistics as
        accurate stays as it is: rows were written since.
        Serialises on: the table's row.
        Raises: NoSuchObjectError without the table.
        """
        with self.db.begin() as pg:
            table = _locked(pg, name)
            known = store.select_statistics_of(pg, table, canonical(partition), HIVE)
            older = [
                each for each in known if each.column in statistics and each.last_analyzed < int(as_of.timestamp())
            ]
            now, origin = int(pg.now.timestamp()), rules.origin(None, seen)
            renewed = [replace(each, data=statistics[each.column], last_analyzed=now, origin=origin) for each in older]
            store.upsert_statistics(pg, table, renewed)
            self.events.record(pg, events.statistics_updated, table, renewed)
            return [statistic.column for statistic in older]

    def delete(self, name: TableName, partition: str, columns: Sequence[str] | None, engine: str | None) -> None:
        """Remove statistics; ``columns`` None: of all.

        Raises: NoSuchObjectError if there are none, InvalidObjectError without a partition's table.
        Serialises on: the table's row.
        """
        gone = None if columns is None else [column.strip().lower() for column in columns]
        with self.db.begin() as pg:
            table = _locked(pg, name, of_partition=bool(partition))
            deleted = store.delete_statistics(pg, table, canonical(partition), gone, engine)
            if not deleted:
                what = f"partition {partition} of {name}" if partition else str(name)
                raise NoSuchObjectError(f"Column statistics of {what} do not exist")
            for key, parameters in store.lock_parameters(pg, table, [canonical(partition)]).items():
                store.update_parameters(pg, table, key, rules.marked_inaccurate(parameters, deleted))
            self.events.record(pg, events.statistics_deleted, table, canonical(partition), gone)

    @staticmethod
    def _mark(pg: PgTx, table: Table, statistics: Sequence[ColumnStatistics]) -> dict[str, Parameters]:
        """Mark these statistics as accurate in the parameters; return the parameters by partition.

        A transactional table gets no mark: a snapshot would be needed.
        """
        columns: dict[str, list[str]] = {}
        for statistic in statistics:
            columns.setdefault(statistic.partition, []).append(statistic.column)
        parameters = store.lock_parameters(pg, table, list(columns))
        missing = [partition for partition in columns if partition not in parameters]
        if missing:
            raise NoSuchObjectError(f"Partition {missing[0]} of {table.name} does not exist")
        if is_transactional(table.parameters):
            return parameters
        marked = {key: rules.marked_accurate(parameters[key], names) for key, names in columns.items()}
        for partition, of_partition in marked.items():
            store.update_parameters(pg, table, partition, of_partition)
        return marked


def _locked(pg: PgTx, name: TableName, *, of_partition: bool = False) -> Table:
    table = tables.lock_table(pg, name)
    if table is None:
        raise (InvalidObjectError if of_partition else NoSuchObjectError)(f"{name} table not found")
    return table


def _require_columns(table: Table, statistics: Iterable[ColumnStatistics]) -> None:
    known = {column["name"] for column in table.sd["cols"]}
    for statistic in statistics:
        if not statistic.partition and statistic.column not in known:
            raise MetaError(
                f"Column {statistic.column} doesn't exist in table {table.name.table} in database {table.name.db}"
            )


def _merged(
    pg: PgTx, table: Table, statistics: Sequence[ColumnStatistics], seen: ValidWriteIdList | None
) -> list[ColumnStatistics]:
    stored = {
        (statistic.partition, statistic.column, statistic.engine): statistic
        for statistic in store.select_statistics(
            pg,
            table,
            list({statistic.partition for statistic in statistics}),
            list({statistic.column for statistic in statistics}),
        )
    }
    merged = []
    for statistic in statistics:
        known = stored.get((statistic.partition, statistic.column, statistic.engine))
        merged.append(
            replace(
                statistic,
                data=rules.joined([known.data, statistic.data]) if known else statistic.data,
                origin=rules.merged_origin(statistic.origin, known.origin if known else None, seen),
            )
        )
    return merged
