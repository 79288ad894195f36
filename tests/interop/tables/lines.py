"""Text and JSON of insert-only tables, read and written by the SerDes of Hive 4.0.1: `make interop-tables`; not part of `make test`.

Hive reads what the session wrote by one SerDe and writes it by another, and the session reads that: the rows are those of
the beginning. So both of Hive's have read and written them rightly, in both directions.
"""

import subprocess
from pathlib import Path

import pytest

from metastore.acid_tables.table import AcidTable
from metastore.ids import table_name
from tests.acceptance.spark_session.test_hive_storage import EVERY, ROWS, location, shown
from tests.interop.java import OPENED, compiled, fetched, java_home

HERE = Path(__file__).parent
ONLY = "TBLPROPERTIES ('transactional'='true', 'transactional_properties'='insert_only')"
# Hive 4 cuts the spaces of CHAR, and pads it: what is compared is the text that is in the files.
COLUMNS = EVERY.replace("CHAR(5)", "STRING")
FORMATS = {"text": "ROW FORMAT DELIMITED FIELDS TERMINATED BY ',' ESCAPED BY '\\\\' STORED AS TEXTFILE", "json": "STORED AS JSONFILE"}


@pytest.fixture(scope="session")
def convert(tmp_path_factory):
    """Lines of a table by another table's SerDe, both as they are in the metastore."""
    home = java_home(17)
    path = compiled(HERE / "java" / "HiveLines.java", home, fetched(HERE / "pom.xml", "hive-4.0.1"), "hive-4.0.1")

    def run(source, table, target, other):
        told = []
        for one in (table, other):
            told.append(tmp_path_factory.mktemp("told") / "properties")
            told[-1].write_text(one.file_format.text())
        subprocess.run([home / "bin" / "java", "-Xmx500m", "-Duser.timezone=UTC", *OPENED, "-cp", path, "HiveLines", source,
                        told[0], target, told[1]], check=True)
    return run


@pytest.mark.parametrize(("first", "second"), [("text", "json"), ("json", "text"), ("json", "json"), ("text", "text")])
def test_hive_4_reads_and_writes_the_same_rows(acid_session, spark, db, convert, first, second):
    tables = []
    for name, kind in (("ours", first), ("theirs", second)):
        acid_session.sql(f"CREATE TABLE {db}.{name} ({COLUMNS}) {FORMATS[kind]} {ONLY}")
        tables.append(AcidTable.of(table_name(db, name), acid_session.client.get_table(db, name)))
    query = ROWS.replace("double('-Infinity')", "-1e300D")  # no number in JSON
    acid_session.sql(f"INSERT INTO {db}.ours SELECT * FROM ({query})")
    acid_session.sql(f"INSERT INTO {db}.theirs SELECT * FROM ({query}) LIMIT 1")
    place = location(acid_session, f"{db}.theirs") / "delta_0000001_0000001_0000"
    for file in place.iterdir():
        file.unlink()
    for number, file in enumerate(sorted((location(acid_session, f"{db}.ours") / place.name).glob("0*"))):
        convert(file, tables[0], place / f"{number:06}_0", tables[1])

    assert shown(acid_session.table(f"{db}.theirs")) == shown(spark.sql(query))
