"""Insert-only tables through the real loops; the Spark job runs in the session of the tests."""

import gzip
import shutil
from dataclasses import replace
from pathlib import Path
from threading import Event
from urllib.parse import unquote, urlsplit

import pyarrow.parquet as pq
import pyorc
import pytest

from metastore.compaction.cleaning.service import CleanerService
from metastore.compaction.queue.rules.properties import job_properties
from metastore.compaction.working.job_specification import CompactionJobSpec
from metastore.compaction.working.service import WorkerService
from metastore.config import CompactionSettings
from metastore.db.engine import Database
from metastore.errors import InvalidOperationError
from metastore.files import Files
from metastore.locks.service import LockService
from metastore.loops.cleaner import Cleaner
from metastore.loops.job_runner import JobOutcome, SubprocessRunner
from metastore.loops.worker import Worker, WorkOutcome
from metastore.spark.compaction.job import run_for
from metastore.spark.compaction.process import described_table
from metastore.write_ids.service import WriteIdService
from tests.support.compacting import wait_until_cleaned
from tests.support.transactions import seconds

pytestmark = pytest.mark.spark
INSERT_ONLY = "TBLPROPERTIES ('transactional'='true', 'transactional_properties'='insert_only')"


class InThisSession(SubprocessRunner):
    """What the child process does, in a Spark session that is there already."""

    def run(self, spec, pulse):
        spec = replace(spec, metastore_uri=self.metastore_uri)
        table = described_table(spec)
        return JobOutcome(succeeded=True, result=run_for(self.spark, spec, table))


@pytest.fixture
def loops(lakehouse, spark, nobody_reads):
    database, files = Database(lakehouse.database_url), Files()
    settings = CompactionSettings(cleaner_retention=seconds(0))
    runner = InThisSession(settings, lakehouse.uri)
    runner.spark = spark
    yield (Worker(WorkerService(database, settings), LockService(database), WriteIdService(database), files, runner, "host-1.0", "test", seconds(300)),
           Cleaner(CleanerService(database, settings), files, Event()))
    database.close()


@pytest.mark.slow
@pytest.mark.parametrize("file_format", ["ORC", "PARQUET", "AVRO"])
def test_they_are_compacted_and_read_the_same(acid_session, db, loops, spark, tmp_path, file_format):
    """Minor, then major: the rows of committed writes, and none of an aborted one whose files stayed."""
    table = f"{db}.only"
    acid_session.sql(f"CREATE TABLE {table} (id INT, name STRING) PARTITIONED BY (p STRING) CLUSTERED BY (id) INTO 2 BUCKETS "
                     f"STORED AS {file_format} {INSERT_ONLY}")
    for number in range(2):
        acid_session.sql(f"INSERT INTO {table} VALUES ({number}, 'n{number}', 'a b'), ({number + 10}, NULL, 'a b')")
    place = Path(unquote(urlsplit(acid_session.client.get_table(db, "only").sd.location).path)) / "p=a b"
    with pytest.raises(ZeroDivisionError), acid_session.transaction():
        acid_session.sql(f"INSERT INTO {table} VALUES (99, 'gone', 'a b')")
        [gone] = place.glob("delta_0000003*")
        shutil.copytree(gone, tmp_path / "gone")
        raise ZeroDivisionError
    shutil.copytree(tmp_path / "gone", gone)
    acid_session.sql(f"INSERT INTO {table} VALUES (20, 'x', 'a b')")
    assert len(list(place.iterdir())) == 4
    worker, cleaner = loops

    def rows():
        return sorted(map(tuple, acid_session.table(table).collect()))

    def compacted(kind):
        types, before = acid_session.client.types, rows()
        number = acid_session.client.compact2(types.CompactionRequest(
            db, "only", "p=a b", getattr(types.CompactionType, kind))).id
        report = worker.tick()
        while report.compaction_id not in (number, None):
            report = worker.tick()
        assert report.outcome is WorkOutcome.COMPACTED, report
        assert rows() == before
        wait_until_cleaned(cleaner, number)
        assert rows() == before
        assert sorted(file.name for file in place.glob("*_v*/0*")) == ["000000_0", "000001_0"]
        return sorted(child.name.partition("_v")[0] for child in place.iterdir() if child.is_dir())

    assert [row[0] for row in rows()] == [0, 1, 10, 11, 20]
    assert compacted("MINOR") == ["delta_0000001_0000004"]
    acid_session.sql(f"INSERT INTO {table} VALUES (5, 'late', 'a b')")
    assert compacted("MAJOR") == ["base_0000005"]


def test_lines_of_text_are_copied_as_they_are(acid_session, db, loops, spark):
    """What no column has is kept as well; files of Hive's, zipped ones among them, keep their buckets."""
    acid_session.sql(f"CREATE TABLE {db}.text (id INT, name STRING) CLUSTERED BY (id) INTO 2 BUCKETS ROW FORMAT DELIMITED FIELDS "
                     f"TERMINATED BY ',' STORED AS TEXTFILE {INSERT_ONLY}")
    for number in range(2):
        acid_session.sql(f"INSERT INTO {db}.text VALUES ({number}, 'a'), ({number + 10}, NULL), ({number + 20}, 'c')")
    root = Path(unquote(urlsplit(acid_session.client.get_table(db, "text").sd.location).path))
    odd = b"no number,\xff\xfe,more\n"
    (root / "delta_0000001_0000001_0000" / "000001_0_copy_1.gz").write_bytes(gzip.compress(odd))
    rows, lines = sorted(map(tuple, acid_session.table(f"{db}.text").collect()), key=repr), {}
    for file in root.glob("delta*/0*"):
        content = gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
        lines.setdefault(file.name[:8], []).extend(content.splitlines())
    types = acid_session.client.types
    number = acid_session.client.compact2(types.CompactionRequest(db, "text", None, types.CompactionType.MAJOR)).id
    report = loops[0].tick()
    while report.compaction_id not in (number, None):
        report = loops[0].tick()
    assert report.outcome is WorkOutcome.COMPACTED, report
    [base] = root.glob("base_0000002_v*")
    assert {file.name: sorted(file.read_bytes().splitlines()) for file in base.glob("0*")} == {
        name: sorted(found) for name, found in lines.items()}
    assert sorted(map(tuple, acid_session.table(f"{db}.text").collect()), key=repr) == rows
    assert len(rows) == 7


def test_orcs_settings_are_the_tables_and_the_requests(acid_session, db, spark, lakehouse):
    """COMP-W31: as for full ACID, and only where ORC is written."""
    asked = {"orc.compress": "SNAPPY", "orc.row.index.stride": "1000", "orc.bloom.filter.columns": "v"}
    for name, file_format, of_table in [("orcs", "ORC", asked), ("parquets", "PARQUET", {"orc.compress": "ZSTD"})]:
        acid_session.sql(f"CREATE TABLE {db}.{name} (v STRING) STORED AS {file_format} {INSERT_ONLY}")
        acid_session.sql(f"INSERT INTO {db}.{name} VALUES ('x'), ('y')")
        location = acid_session.client.get_table(db, name).sd.location
        spec = CompactionJobSpec(1, 1, "major", "hive", db, name, "", location, f"{db}.{name}:1:9223372036854775807::", "", 7, 1,
                                 metastore_uri=lakehouse.uri, properties=job_properties({}, of_table, {"tblprops.orc.row.index.stride": "2000"}))
        run_for(spark, spec, described_table(spec))
        written = Path(unquote(urlsplit(location).path)) / "base_0000001_v0000007" / "000000_0"
        with written.open("rb") as file:
            if file_format == "PARQUET":
                assert pq.read_metadata(file).row_group(0).column(0).compression == "SNAPPY"
                continue
            orc = pyorc.Reader(file)
            assert (orc.compression, orc.row_index_stride) == (pyorc.CompressionKind.SNAPPY, 2000)
            assert orc.schema.find_column_id("v") in orc.read_stripe(0).bloom_filter_columns


def test_what_cannot_be_copied_exactly_is_left_alone(acid_session, db, spark, lakehouse):
    acid_session.sql(f"CREATE TABLE {db}.times (at TIMESTAMP) STORED AS PARQUET {INSERT_ONLY}")
    acid_session.sql(f"INSERT INTO {db}.times VALUES (NULL)")
    location = acid_session.client.get_table(db, "times").sd.location
    spec = CompactionJobSpec(1, 1, "major", "hive", db, "times", "", location, f"{db}.times:1:9223372036854775807::", "", 7, 1,
                             metastore_uri=lakehouse.uri)
    with pytest.raises(InvalidOperationError, match="nanoseconds"):
        run_for(spark, spec, described_table(spec))


def test_a_column_is_known_in_any_case_of_its_name(acid_session, db, loops, spark):
    """Whatever the settings of the cluster say: else its values came out as NULL, as many as went in."""
    acid_session.sql(f"CREATE TABLE {db}.cased (id INT) STORED AS PARQUET {INSERT_ONLY}")
    for number in range(2):
        acid_session.sql(f"INSERT INTO {db}.cased VALUES ({number})")
    place = Path(unquote(urlsplit(acid_session.client.get_table(db, "cased").sd.location).path))
    for file in place.glob("delta_*/0*"):
        pq.write_table(pq.read_table(file).rename_columns(["ID"]), file)
        file.with_name(f".{file.name}.crc").unlink(missing_ok=True)
    types, defaults = acid_session.client.types, spark.sparkContext._jsc.sc().conf()
    acid_session.client.compact2(types.CompactionRequest(db, "cased", None, types.CompactionType.MAJOR))

    defaults.set("spark.sql.caseSensitive", "true")
    try:
        report = loops[0].tick()
    finally:
        defaults.remove("spark.sql.caseSensitive")
    assert report.outcome is WorkOutcome.COMPACTED, report
    assert sorted(map(tuple, acid_session.table(f"{db}.cased").collect())) == [(0,), (1,)]
