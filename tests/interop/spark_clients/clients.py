"""ACID tables through each client that Spark has: its shell, JDBC, Spark Connect; `make spark-clients`, not part of `make test`.

Each client runs the same statements, on a metastore that `metastore serve` started, and shows the same rows and sentences. What is
left is read once more without Spark.
"""

import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from zipfile import ZipFile

import pytest

from metastore.client import MetastoreClient, scan
from tests.interop.spark_clients.conftest import SPARK, environment, waited
from tests.support.spark_sessions import connector

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1200)]

_ACID = "STORED AS ORC TBLPROPERTIES ('transactional'='true')"
_STORY = (
    ("CREATE DATABASE {db}", []),
    (f"CREATE TABLE {{db}}.t (id INT, name STRING, place STRUCT<city: STRING>) PARTITIONED BY (day DATE) {_ACID}", []),
    ("""INSERT INTO {db}.t VALUES (1, 'a', named_struct('city', 'x'), DATE'2024-05-01'), (2, 'b', NULL, DATE'2024-05-01'),
        (3, NULL, NULL, DATE'2024-05-02'), (4, 'd', NULL, NULL)""", []),
    ("SELECT count(*) FROM {db}.t", [("4",)]),
    ("UPDATE {db}.t SET name = upper(name), place.city = 'y' WHERE id < 3", []),
    ("DELETE FROM {db}.t WHERE day IS NULL", []),
    ("""MERGE INTO {db}.t t USING (SELECT * FROM VALUES (3, 'c', DATE'2024-05-02'), (5, 'e', DATE'2024-05-03') AS s(id, name, day)) s
        ON t.id = s.id AND t.day = s.day WHEN MATCHED THEN UPDATE SET name = s.name
        WHEN NOT MATCHED THEN INSERT (id, name, place, day) VALUES (s.id, s.name, NULL, s.day)""", []),
    ("SELECT id, name, place.city, day FROM {db}.t ORDER BY id", [
        ("1", "A", "y", "2024-05-01"), ("2", "B", "y", "2024-05-01"), ("3", "c", None, "2024-05-02"), ("5", "e", None, "2024-05-03")]),
    ("INSERT OVERWRITE {db}.t PARTITION (day = '2024-05-02') SELECT 9, 'o', NULL", []),
    ("SELECT id FROM {db}.t WHERE day = DATE'2024-05-02'", [("9",)]),
    ("SELECT count(*), max(ROW__ID.writeid) FROM {db}.t VERSION AS OF 1", [("4", "1")]),
    ("SELECT id FROM {db}.t TIMESTAMP AS OF current_timestamp() WHERE id = 9", [("9",)]),
    (f"CREATE TABLE {{db}}.copy {_ACID} AS SELECT id, day FROM {{db}}.t", []),
    ("CREATE VIEW {db}.both AS SELECT t.id FROM {db}.t t JOIN {db}.copy c ON t.id = c.id WHERE t.id IN (SELECT id FROM {db}.copy)", []),
    ("SELECT count(*) FROM {db}.both", [("4",)]),
    ("TRUNCATE TABLE {db}.copy", []),
    ("SELECT count(*) FROM {db}.both", [("0",)]),
)
_MISTAKES = (
    ("UPDATE {db}.t SET day = DATE'2024-01-01'", "Partition column day of {db}.t cannot be updated: delete the row and insert it"),
    ("SELECT * FROM {db}.t VERSION AS OF 'x'", "version 'x' of the table .*t is no write id"),
    ("SELECT nothing FROM {db}.t", "UNRESOLVED_COLUMN.*nothing"),
    ("SELECT * FROM {db}.missing", "TABLE_OR_VIEW_NOT_FOUND.*missing"),
    ("INSERT INTO {db}.t VALUES (1)", "INSERT_COLUMN_ARITY_MISMATCH"),
    ("ALTER TABLE {db}.t DROP COLUMN nothing", "nothing"),
    (f"CREATE TABLE {{db}}.t (id INT) {_ACID}", "already exists"),
    ("""MERGE INTO {db}.t t USING (SELECT 1 AS id UNION ALL SELECT 1) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET name = 'two'""",
     "MERGE_CARDINALITY_VIOLATION|match the same row"),
)
_LEFT = [(1, "A"), (2, "B"), (5, "e"), (9, "o")]


def test_the_jar_of_another_version_is_refused(metastore, settings, tmp_path):
    """It would lack a class, or have one too many, in the middle of some statement."""
    right = Path(connector())
    with ZipFile(right) as jar, ZipFile(tmp_path / "wrong.jar", "w") as out:
        for entry in jar.infolist():
            out.writestr(entry, b"spark-1.0.jar" if entry.filename.endswith("/compiled-for") else jar.read(entry))
    given = [one.replace(str(right), str(tmp_path / "wrong.jar")) for one in settings]

    done = subprocess.run([SPARK / "bin" / "spark-sql", *given, "-e", "SELECT 1"], capture_output=True, text=True, check=False,
                          env=environment(), cwd=tmp_path)

    assert done.returncode
    assert f"the jar of its catalog for ACID tables is spark-1.0.jar: it needs {right.name}" in done.stderr


@pytest.mark.parametrize("client", ["shell", "jdbc", "connect"])
def test_a_client(request, metastore, client):
    run, db = request.getfixturevalue(client), f"of_{client}"
    answers = run([statement.format(db=db) for statement, _ in (*_STORY, *_MISTAKES)])

    for (statement, rows), answer in zip(_STORY, answers, strict=False):
        assert answer == [tuple(text and text.format(db=db) for text in row) for row in rows], statement
    for (statement, sentence), answer in zip(_MISTAKES, answers[len(_STORY):], strict=True):
        assert isinstance(answer, str), statement
        said, _, _frames = answer.partition("\n\tat ")  # which JDBC and Connect append to any error
        assert re.search(sentence.format(db=db), said, re.DOTALL), f"{statement}: {answer[:2000]}"
    left = scan(f"{db}.t", columns=["id", "name"], uri=metastore.uri).to_arrow().to_pydict()
    assert sorted(zip(*left.values(), strict=True)) == _LEFT
    with MetastoreClient(metastore.uri) as wire:
        open_state = wire.types.TxnState.OPEN
        waited(lambda: not [one for one in wire.get_open_txns_info().open_txns if one.state == open_state], "the end of each transaction")


def test_two_sparks_change_the_same_row_and_the_loser_is_told(jdbc, connect):
    """Each is a Spark of its own. The second has read before the first commits: its update would undo what it has not seen."""
    jdbc(["CREATE DATABASE rows", f"CREATE TABLE rows.t (id INT, n INT) {_ACID}", "INSERT INTO rows.t VALUES (1, 0)"])
    began = connect(["CALL spark_catalog.system.begin()", "SELECT n FROM rows.t"])
    assert began[1] == [("0",)]
    assert jdbc(["UPDATE rows.t SET n = n + 1"]) == [[]]

    told = connect(["UPDATE rows.t SET n = n + 10", "CALL spark_catalog.system.commit()", "CALL spark_catalog.system.rollback()"])

    for answer in told[:2]:
        assert re.search(r"Transaction \d+ of \S+@\S+ \(spark .*\), at .* changed and committed rows/t first.* CALL system.rollback", str(answer)), told
    assert jdbc(["SELECT n FROM rows.t"]) == connect(["SELECT n FROM rows.t"]) == [[("1",)]]


def test_two_sparks_count_at_the_same_time_and_no_count_is_lost(jdbc, connect):
    jdbc(["CREATE DATABASE counted", f"CREATE TABLE counted.t (id INT, n INT) {_ACID}", "INSERT INTO counted.t VALUES (1, 0), (2, 0)"])
    statement = "UPDATE counted.t SET n = n + 1 WHERE id = 1"
    with ThreadPoolExecutor(2) as sparks:
        answers = [answer for run in [sparks.submit(client, [statement] * 8) for client in (jdbc, connect)] for answer in run.result()]

    assert all("committed its update of" in answer for answer in answers if answer != [])
    assert answers.count([]) >= 8
    assert jdbc(["SELECT id, n FROM counted.t ORDER BY id"]) == [[("1", str(answers.count([]))), ("2", "0")]]
