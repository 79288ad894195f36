"""The compaction job as the Worker starts it: a process that asks the metastore for the columns, and may be killed."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from metastore.acid.names import DeltaName
from metastore.acid.snapshots import NO_OPEN
from metastore.compaction.working.job_specification import CompactionJobResult, CompactionJobSpec
from metastore.db.engine import Database
from tests.support.acid.tables import B0, AcidTable
from tests.support.thrift_server import until

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

ROWS = 20_000


@pytest.fixture
def table(client: Any, spark: SparkSession, tmp_path: Path) -> AcidTable:
    types = client.types
    directory = tmp_path / "t"
    directory.mkdir()
    columns = [types.FieldSchema(name="v", type="string", comment="")]
    serde = types.SerDeInfo(name="t", serializationLib="org.apache.hadoop.hive.ql.io.orc.OrcSerde", parameters={})
    storage = types.StorageDescriptor(
        cols=columns, location=directory.as_uri(), inputFormat="org.apache.hadoop.hive.ql.io.orc.OrcInputFormat",
        outputFormat="org.apache.hadoop.hive.ql.io.orc.OrcOutputFormat", serdeInfo=serde, parameters={}, compressed=False,
        numBuckets=-1, bucketCols=[], sortCols=[])
    client.create_table(types.Table(dbName="default", tableName="t", sd=storage, partitionKeys=[], owner="me",
                                    parameters={"transactional": "true"}, tableType="MANAGED_TABLE"))
    made = AcidTable(spark, directory)
    made.insert(DeltaName(1, 1, 0), [(1, B0, row, [f"row {row}"]) for row in range(ROWS)])
    made.insert(DeltaName(2, 2, 0), [(2, B0, 0, ["last"])])
    return made


def _command(directory: Path, uri: str, work: Path, txn_id: int, **changed: Any) -> list[str]:
    spec = CompactionJobSpec(**{
        "compaction_id": 1, "attempt": 1, "kind": "major", "catalog": "hive", "database": "default", "table": "t",
        "partition": "", "location": directory.as_uri(), "write_ids": f"default.t:2:{NO_OPEN}::", "txns": "",
        "txn_id": txn_id, "highest_write_id": 2, "metastore_uri": uri, "spark_conf": {"spark.master": "local[1]"},
        "result_path": str(work / "result.json"), **changed})
    path = work / f"spec-{txn_id}.json"
    path.write_text(spec.to_json())
    return [sys.executable, "-m", "metastore.spark.compaction.process", str(path)]


@pytest.mark.robustness  # a Spark of its own, twice
def test_killed_at_work_it_leaves_nothing_visible_and_the_next_attempt_succeeds(
    table: AcidTable, server: Any, client: Any, tmp_path: Path, database: Database
) -> None:
    before = table.names()
    with database.begin() as pg:
        pg.sql("LOCK TABLE txns")  # whether it may publish is a question about its transaction: it cannot be done before
        child = subprocess.Popen(_command(table.directory, server.thrift_uri, tmp_path, 7), start_new_session=True,
                                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        until(lambda: child.poll() is not None or (table.directory / ".compaction_7_0").exists())
        os.killpg(child.pid, signal.SIGKILL)
        assert child.wait() == -signal.SIGKILL, "killed before it was done"
    assert (table.directory / ".compaction_7_0").exists()
    assert table.names() == before

    compaction_id, txn_id = _claimed(client)
    done = subprocess.run(_command(table.directory, server.thrift_uri, tmp_path, txn_id, compaction_id=compaction_id),
                          check=False, capture_output=True, text=True)

    assert done.returncode == 0, done.stderr
    result = CompactionJobResult.from_json((tmp_path / "result.json").read_text())
    base = f"base_0000002_v{txn_id:07d}"
    assert result.directories == (base,)
    assert (result.rows_in, result.rows_out) == (ROWS + 1, ROWS + 1)
    assert table.names() == [base, *before]
    rows = table.spark.read.schema(table.schema).orc(f"{table.directory}/{base}")
    counted = rows.where("operation = 0 and originalTransaction > 0 and bucket > 0 and rowId >= 0 and currentTransaction > 0 and row is not null")
    assert counted.select("row.v").distinct().count() == ROWS + 1


def _claimed(client: Any) -> tuple[int, int]:
    """Claim a compaction as a Worker does, and return its id and its transaction."""
    types = client.types
    client.compact2(types.CompactionRequest("default", "t", None, types.CompactionType.MAJOR))
    found = client.find_next_compact2(types.FindNextCompactRequest("w-1", "1")).ci
    [txn_id] = client.open_txns(types.OpenTxnRequest(1, "me", "h", txn_type=types.TxnType.COMPACTION)).txn_ids
    client.update_compactor_state(found, txn_id)
    return found.id, txn_id


def test_a_failures_reason_is_told(server: Any, tmp_path: Path) -> None:
    done = subprocess.run(_command(tmp_path, server.thrift_uri, tmp_path, 8, table="nosuch"), check=False, capture_output=True,
                          text=True)

    assert done.returncode == 1
    assert "nosuch" in CompactionJobResult.from_json((tmp_path / "result.json").read_text()).error
    assert json.loads((tmp_path / "spec-8.json").read_text())["table"] == "nosuch"
