"""A process that compacts: one job, or several one after another in the same Spark.

    python -m metastore.spark.compaction.process SPECIFICATION
    python -m metastore.spark.compaction.process

With a specification (JSON, or the path of a file with it) the process runs that job and exits with its status.
Without one, it reads paths of such files from stdin, one per line, and prints each job's exit status to stdout; all
other output goes to stderr.

Rule: each job has a session of its own, and leaves nothing in Spark for the next job.
"""

import argparse
import os
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from threading import Thread
from typing import Any

from pyspark import SparkContext
from pyspark.sql import SparkSession

from metastore.acid.table_kinds import TableKind
from metastore.acid_tables.table import AcidTable
from metastore.client import DomainClient
from metastore.client.compactions import require_claim
from metastore.compaction.working.job_specification import IN_UTC, CompactionJobResult, CompactionJobSpec, reason
from metastore.compaction.working.rules import UnprovenError
from metastore.files import Files
from metastore.ids import DEFAULT_CATALOG, TableName
from metastore.object_stores import ObjectStores
from metastore.spark.compaction.job import run_for
from metastore.spark.compaction.progress import reported
from metastore.spark.jvm.compiled import jvm_of


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one job, or several one after another; return the exit status."""
    parser = argparse.ArgumentParser(description="Compact directories of transactional tables.")
    parser.add_argument("spec", nargs="?", help="the specification as JSON, or a file that holds it")
    text = parser.parse_args(arguments).spec
    if text is None:
        return _one_after_another()
    spec = CompactionJobSpec.from_json(text if text.lstrip().startswith("{") else Path(text).read_text("utf-8"))
    sessions: list[SparkSession] = []

    def session() -> SparkSession:
        place = f"{spec.database}.{spec.table}" + (f"/{spec.partition}" if spec.partition else "")
        sessions.append(_session(spec.spark_conf, f"{spec.kind} compaction {spec.compaction_id} of {place}"))
        return sessions[0]

    try:
        return carried_out(spec, session)
    finally:
        for spark in sessions:
            spark.stop()


def _one_after_another() -> int:
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8", buffering=1)
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # the JVM inherits this, so it comes before the JVM starts
    for number, line in enumerate(sys.stdin):
        spec = CompactionJobSpec.from_json(Path(line.strip()).read_text("utf-8"))
        code = carried_out(spec, partial(_session, spec.spark_conf, "compactions"))
        if number == 0:
            Thread(target=_end_with_the_jvm, name="jvm", daemon=True).start()
        print(code, file=answers)
    return 0


def _end_with_the_jvm() -> None:
    """End this process with the JVM, so that no job is given to a process without one."""
    gateway: Any = SparkContext._gateway  # noqa: SLF001 - PySpark shows no other way
    if gateway is not None:
        gateway.proc.wait()
        os._exit(1)


def carried_out(spec: CompactionJobSpec, session: Callable[[], SparkSession]) -> int:
    """Run a job and write its result, or its error, to ``spec.result_path``; return the exit status."""
    try:
        table = described_table(spec)
        spark = session()
        _tell_hadoop(spark, spec.hadoop_conf)
        files = Files(stores=ObjectStores(spec.hadoop_conf))
        spark.sparkContext.setJobDescription(f"{spec.kind} compaction {spec.compaction_id} of {table.name}")
        with reported(spark, spec.progress_path) as expects:
            result = run_for(spark, spec, table, files, may_publish=lambda: _require_claim(spec), expects=expects)
        spark.catalog.clearCache()
        jvm_of(spark).System.gc()  # Spark removes the files of shuffles only after a garbage collection
    except Exception as error:  # noqa: BLE001 - the Worker shows its text to an operator
        traceback.print_exc()
        differences = error.differences if isinstance(error, UnprovenError) else ()
        _write_result(spec, CompactionJobResult(error=reason(error), differences=differences))
        return 1
    _write_result(spec, result)
    return 0


def described_table(spec: CompactionJobSpec) -> AcidTable:
    """Return the table in its present state; for a partition of an insert-only table, with the partition's format."""
    name = TableName(spec.catalog, spec.database, spec.table)
    database = spec.database if spec.catalog == DEFAULT_CATALOG else f"@{spec.catalog}#{spec.database}"
    with DomainClient(spec.metastore_uri or None) as client:
        table = AcidTable.of(name, client.get_table(database, spec.table))
        if table.kind is not TableKind.INSERT_ONLY or not spec.partition:
            return table
        partition = client.get_partition_by_name(database, spec.table, spec.partition)
        return replace(table, file_format=table.stored_as(partition.sd))


def _session(conf: Mapping[str, str], name: str) -> SparkSession:
    """Return the session with these settings; all jobs but the first find it running."""
    builder = SparkSession.builder.appName(name)
    if conf.get("spark.master", "").startswith("local"):
        builder = builder.config("spark.ui.enabled", "false").config("spark.driver.host", "localhost")
        builder = builder.config("spark.sql.shuffle.partitions", str(2 * (os.cpu_count() or 1)))
    for key, value in {**conf, **_without_daylight_saving(conf)}.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("WARN")
    return spark


def _tell_hadoop(spark: SparkSession, keys: Mapping[str, str]) -> None:
    """Set keys of Hadoop, except those that Spark's own settings have.

    As settings of the session they would stand on Java's command line, which everybody sees.
    """
    own, hadoop = spark.sparkContext.getConf(), spark._jsc.hadoopConfiguration()  # noqa: SLF001 - PySpark's only way
    for key, value in keys.items():
        if not own.contains(f"spark.hadoop.{key}"):
            hadoop.set(key, value)


def _without_daylight_saving(conf: Mapping[str, str]) -> dict[str, str]:
    """Return the settings with JVMs in UTC. spark-submit's own JVM runs already; its caller sets the zone."""
    names = ("spark.driver.extraJavaOptions", "spark.executor.extraJavaOptions")
    return {name: f"{conf.get(name, '')} {IN_UTC}".strip() for name in names}


def _require_claim(spec: CompactionJobSpec) -> None:
    with DomainClient(spec.metastore_uri or None) as client:
        require_claim(client, spec.compaction_id, spec.txn_id)


def _write_result(spec: CompactionJobSpec, result: CompactionJobResult) -> None:
    if spec.result_path:
        Path(spec.result_path).write_text(result.to_json(), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
