"""Random tables, compacted by our job: Hive's reader sees the model before and after, and Hive's merger of the inputs too.

One here; ``make robustness-tables`` has 200 (RANDOM_TABLES=1-1000).
"""

import os
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from metastore.acid_tables.table import HiveColumn
from metastore.compaction.working.job_specification import CompactionJobSpec
from metastore.spark.compaction.job import run
from tests.support.acid.old_names import plain
from tests.support.acid.random_tables import RandomTable, RowId
from tests.support.hive_oracle.oracle import HiveOracle

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]


def seeds(unless_chosen: str) -> range:
    first, _, last = os.environ.get("RANDOM_TABLES", unless_chosen).partition("-")
    return range(int(first), int(last or first) + 1)


@pytest.mark.parametrize("seed", seeds("242"))
def test_hive_reads_and_merges_what_the_model_has(seed: int, spark: SparkSession, oracle: HiveOracle, tmp_path: Path) -> None:
    """COMP-W38: columns are added, and get wider types, between what is compacted. Hive's merger knows the files' own types only."""
    table = RandomTable(tmp_path / "t", oracle, seed)
    try:
        for txn_id in (1001, 1002):
            for _ in range(table.random.randint(1, 5)):
                table.step()
            read_by_hive(table, oracle)
            if not table.is_widened:
                merged_by_hive(table, oracle)
            compact(table, spark, txn_id)
            read_by_hive(table, oracle)
            if table.random.random() < 0.5:
                table.clean()
    except BaseException as error:
        error.add_note("\n".join(table.log))
        raise


def read_by_hive(table: RandomTable, oracle: HiveOracle) -> None:
    rows = oracle.rows(table.for_hive(), table.snapshot(), table.columns)
    assert {row.row_id: row.values for row in rows} == table.rows_for_hive()


def merged_by_hive(table: RandomTable, oracle: HiveOracle) -> None:
    """Check that Hive's compactor would write the expected rows of each bucket."""
    place, state = table.for_hive(), table.state()
    base = state.base and plain(state.base.path)
    deltas = [plain(delta.path) for delta in state.deltas]
    live: dict[RowId, list[object]] = {}
    for bucket in range(table.buckets):
        has_base = base and (place / base / f"bucket_{bucket:05}").exists()
        for event in oracle.events(place, table.snapshot().for_compactor(), table.columns, bucket, base=base if has_base else None,
                                   deltas=deltas, collapse=True):
            if not event["delete"]:
                live[tuple(event["id"])] = event["event"][5]
    width = len(table.columns)
    assert {key: [*row, *[None] * (width - len(row))] for key, row in live.items()} == table.rows_for_hive()


def compact(table: RandomTable, spark: SparkSession, txn_id: int) -> None:
    """One of the three kinds; a rebalance gives the model's rows their new ids."""
    kind = table.random.choice(("minor", "major", "rebalance"))
    buckets = table.random.randint(1, 4) if kind == "rebalance" else None
    spec = CompactionJobSpec(
        compaction_id=1, attempt=1, kind=kind, catalog="hive", database="db", table="t", partition="", location=str(table.directory),
        write_ids=table.text(), txns="", txn_id=txn_id, highest_write_id=table.mark,
        number_of_buckets=buckets)
    result = run(spark, spec, [HiveColumn(name, kind) for name, kind in table.columns.items()], may_publish=lambda: None)
    if buckets:
        table.rebalanced(buckets)
    table.log.append(f"{kind}: {result.directories}")
