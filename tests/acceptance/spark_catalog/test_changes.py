"""Changes of rows in Spark's own words: applied to a copy of an earlier state they make the later one."""

import random
from collections import Counter
from contextlib import closing
from pathlib import Path
from threading import Event
from urllib.parse import urlsplit

import pytest

from tests.support.compacting import Compacting
from tests.support.spark_sessions import is_before

pytestmark = pytest.mark.spark

_ACID = "STORED AS ORC TBLPROPERTIES ('transactional'='true')"
_CHANGES = ["ROW__ID", "_change_type", "_commit_version", "_commit_timestamp"]


@pytest.fixture(autouse=True)
def _with_changes(catalog) -> None:
    if is_before(catalog, "4.2"):
        pytest.skip("Spark reads changes from 4.2 on")


def sorted_rows(frame):
    return sorted((tuple(row) for row in frame.collect()), key=repr)


def now(catalog, name):
    return Counter(tuple(row) for row in catalog.table(name).collect())


def applied(state, changes):
    """Return the rows of ``state`` with the collected ``changes`` applied."""
    result = Counter(state)
    for change in changes:
        result[change.id, change.name, change.p] += {"insert": 1, "delete": -1}[change["_change_type"]]
    assert all(count >= 0 for count in result.values()), "nothing is deleted that was not there"
    return +result


@pytest.fixture
def table(catalog, db):
    name = f"{db}.t"
    catalog.sql(f"CREATE TABLE {name} (id INT, name STRING) PARTITIONED BY (p INT) {_ACID}")
    return name


def test_changes_make_the_later_state_of_the_earlier(catalog, lakehouse, spark, table, db) -> None:
    chance = random.Random(19)
    states = [Counter()]

    def new():
        return ", ".join(f"({chance.randrange(30)}, 'n{chance.randrange(9)}', {chance.randrange(2)})" for _ in range(chance.randrange(1, 6)))

    statements = [
        lambda: f"INSERT INTO {table} VALUES {new()}",
        lambda: f"UPDATE {table} SET name = 'u{len(states)}' WHERE id % 3 = {chance.randrange(3)}",
        lambda: f"DELETE FROM {table} WHERE id % 4 = {chance.randrange(4)}",
        lambda: f"""MERGE INTO {table} t USING (SELECT DISTINCT col1 id, 'm' name, col3 p FROM VALUES {new()}) s ON t.id = s.id AND t.p = s.p
                    WHEN MATCHED THEN UPDATE SET name = s.name WHEN NOT MATCHED THEN INSERT *""",
    ]

    def go_on(statement):
        catalog.sql(statement)
        states.append(now(catalog, table))

    for _ in range(3):
        go_on(f"INSERT OVERWRITE {table} VALUES {new()}")
        go_on(chance.choice(statements)())
    go_on(f"TRUNCATE TABLE {table}")
    for first in range(1, len(states)):
        changes = catalog.sql(f"SELECT * FROM {table} CHANGES FROM VERSION {first}").drop("ROW__ID", "_commit_version", "_commit_timestamp")
        assert applied(states[first - 1], changes.collect()) == states[-1], first

    begin = len(states)
    go_on(f"INSERT INTO {table} VALUES (1, 'a', 0), (2, 'b', 0), (3, 'c', 1)")
    for _ in range(5):
        go_on(chance.choice(statements)())
    last = len(states) - 1

    def require_all():
        ranges = [(begin, last), (begin + 2, last), (begin + 1, begin + 3), (last, last)]
        of_all = catalog.sql(" UNION ALL ".join(
            f"SELECT {place} AS place, * FROM {table} CHANGES FROM VERSION {first} TO VERSION {end}" for place, (first, end) in enumerate(ranges))).collect()
        for place, (first, end) in enumerate(ranges):
            changes = [change for change in of_all if change.place == place]
            assert applied(states[first - 1], changes) == states[end], (first, end)
            assert {change["_commit_version"] for change in changes} <= set(range(first, end + 1))
            ids = [(change.p, *(change[name] for name in _CHANGES[:2])) for change in changes]
            assert len(ids) == len(set(ids)), "a row is inserted once, and deleted once"

    require_all()
    columns = catalog.sql(f"SELECT * FROM {table} CHANGES FROM VERSION {begin}")
    assert {row[0] for row in columns.select("_commit_version").collect()} <= set(range(begin, last + 1))
    ids = [tuple(row) for row in columns.select("p", *_CHANGES[:2]).collect()]
    assert len(ids) == len(set(ids)) > 0
    with closing(Compacting(lakehouse.database_url, lakehouse.uri, spark)) as compacting:
        def require_compacted(kind, part):
            assert compacting.compact(*table.split("."), kind, f"p={part}") == "compacted"
            require_all()  # what the Cleaner has yet to remove is read
            while "cleaned" not in [entry.outcome.value for entry in compacting.clean()]:
                Event().wait(0.2)

        for part in range(2):
            require_compacted("minor", part)
        require_all()
        go_on(f"INSERT INTO {table} VALUES (99, 'z', 0), (98, 'y', 1)")
        require_compacted("major", 0)
        with pytest.raises(Exception, match=rf"p=0 was compacted up to write id {last + 1}: .*begin with write id {last + 2}"):
            catalog.sql(f"SELECT * FROM {table} CHANGES FROM VERSION {last}").collect()
        assert sorted_rows(catalog.sql(f"SELECT id FROM {table} CHANGES FROM VERSION {last + 1} WHERE p = 1")) == [(98,)]
        assert catalog.sql(f"SELECT * FROM {table} CHANGES FROM VERSION {last + 2}").count() == 0


@pytest.fixture
def keyed(catalog, client, db):
    """Create a table with a key: write id 1 inserts 1 and 2, 2 changes 2 and inserts 3, 3 deletes 1 and 4 changes 2 again."""
    name = f"{db}.keyed"
    catalog.sql(f"CREATE TABLE {name} (id INT, name STRING) {_ACID}")
    types = client.types
    client.add_primary_key(types.AddPrimaryKeyRequest([types.SQLPrimaryKey(
        table_db=db, table_name="keyed", column_name="id", key_seq=1, pk_name="pk", enable_cstr=False, validate_cstr=False,
        rely_cstr=True, catName="hive")]))
    catalog.sql(f"INSERT INTO {name} VALUES (1, 'a'), (2, 'b')")
    catalog.sql(f"""MERGE INTO {name} t USING (SELECT 2 id UNION ALL SELECT 3) s ON t.id = s.id
                    WHEN MATCHED THEN UPDATE SET name = 'B' WHEN NOT MATCHED THEN INSERT (id, name) VALUES (s.id, 'c')""")
    catalog.sql(f"DELETE FROM {name} WHERE id = 1")
    catalog.sql(f"UPDATE {name} SET name = 'BB' WHERE id = 2")
    return name


def test_ranges_and_what_spark_makes_of_them(catalog, keyed, open_transactions) -> None:
    columns = "_change_type, _commit_version, id, name"

    def changes(clause):
        return sorted_rows(catalog.sql(f"SELECT {columns} FROM {keyed} CHANGES {clause}"))

    third, fourth = [("delete", 3, 1, "a")], [("delete", 4, 2, "B"), ("insert", 4, 2, "BB")]
    assert changes("FROM VERSION 3") == sorted([*third, *fourth], key=repr)
    assert changes("FROM VERSION 3 TO VERSION 4 EXCLUSIVE") == changes("FROM VERSION 3 TO VERSION 3") == third
    assert changes("FROM VERSION 3 EXCLUSIVE TO VERSION 4") == fourth
    assert changes("FROM VERSION 2 TO VERSION 2 WITH (computeUpdates = 'true')") == [
        ("insert", 2, 3, "c"), ("update_postimage", 2, 2, "B"), ("update_preimage", 2, 2, "b")]
    net = catalog.sql(f"SELECT _change_type, id, name FROM {keyed} CHANGES FROM VERSION 1 WITH (deduplicationMode = 'netChanges')")
    assert sorted_rows(net) == [("insert", 2, "BB"), ("insert", 3, "c")]
    read = catalog.read.option("startingVersion", 3).option("endingVersion", 3).changes(keyed)
    assert sorted_rows(read.select(*columns.split(", "))) == third
    assert catalog.sql(f"SELECT count(*), max(_commit_version) FROM {keyed} CHANGES FROM VERSION 0").first()[:] == (8, 4)
    assert sorted_rows(read.where("id = 9")) == sorted_rows(read.where("_change_type = 'insert'")) == []

    times = catalog.sql(f"SELECT DISTINCT _commit_version, _commit_timestamp FROM {keyed} CHANGES FROM VERSION 1").collect()
    of = {row[0]: row[1] for row in times}
    assert sorted(of) == [1, 2, 3, 4]
    assert sorted(of.values()) == [of[1], of[2], of[3], of[4]]
    assert changes(f"FROM TIMESTAMP '{of[3]}' TO TIMESTAMP '{of[4]}' EXCLUSIVE") == third
    assert changes(f"FROM TIMESTAMP '{of[3]}' EXCLUSIVE") == fourth

    joined = f"SELECT c.id FROM {keyed} CHANGES FROM VERSION 3 c JOIN {keyed} t ON t.id = c.id AND t.name = c.name"
    assert catalog.sql(joined).collect() == [(2,)]
    assert "changes from write id 3 to 4" in catalog.sql(f"EXPLAIN SELECT * FROM {keyed} CHANGES FROM VERSION 3 TO VERSION 4").first()[0]
    assert open_transactions() == []


def test_changes_of_others_are_refused(catalog, client, lakehouse, keyed, table, db, open_transactions) -> None:
    def refused(sentence, name, clause):
        with pytest.raises(Exception, match=sentence):
            catalog.sql(f"SELECT * FROM {name} CHANGES {clause}").collect()

    refused("no PRIMARY KEY, .*leave out computeUpdates", table, "FROM VERSION 0 WITH (computeUpdates = 'true')")
    refused("write ids up to 4; .*9 is not among them", keyed, "FROM VERSION 3 TO VERSION 9")
    refused("to a later one, not from 4 to 2", keyed, "FROM VERSION 4 TO VERSION 2")
    refused("'x' of the table .* is no write id", keyed, "FROM VERSION 'x'")
    catalog.sql(f"CREATE TABLE {db}.adds (id INT) STORED AS ORC TBLPROPERTIES ('transactional'='true', 'transactional_properties'='insert_only')")
    refused("is insert-only: its rows have no ids", f"{db}.adds", "FROM VERSION 1")
    catalog.sql(f"CREATE TABLE {db}.flat (id INT) USING parquet")
    refused("(?i)change data capture", f"{db}.flat", "FROM VERSION 1")

    txn = client.open_txns(client.types.OpenTxnRequest(1, "ann", "h")).txn_ids[0]
    client.allocate_table_write_ids(client.types.AllocateTableWriteIdsRequest(db, "keyed", txnIds=[txn]))
    catalog.sql(f"INSERT INTO {keyed} VALUES (9, 'i')")
    assert catalog.sql(f"SELECT * FROM {keyed} CHANGES FROM VERSION 5").count() == 0, "it stops before what may still be committed"
    refused("write id 5 of .*keyed belongs to a transaction that is still open", keyed, "FROM VERSION 4 TO VERSION 6")
    client.abort_txns(client.types.AbortTxnsRequest([txn]))
    assert catalog.sql(f"SELECT id FROM {keyed} CHANGES FROM VERSION 5").collect() == [(9,)]

    catalog.sql(f"INSERT OVERWRITE {keyed} SELECT 7, 'x'")
    assert Counter(row.kind for row in catalog.sql(f"SELECT _change_type kind FROM {keyed} CHANGES FROM VERSION 7").collect()) == {"delete": 3, "insert": 1}
    for path in Path(urlsplit(client.get_table(db, "keyed").sd.location).path).glob("del*"):
        path.rename(path.with_name(f".{path.name}"))
    refused("overwritten by base_0000007, and its files are gone", keyed, "FROM VERSION 5")
    assert catalog.sql(f"SELECT id FROM {keyed} CHANGES FROM VERSION 8").collect() == []
    assert open_transactions() == []


def test_a_stream_of_changes(catalog, keyed, tmp_path) -> None:
    def read():
        def write(rows, number):
            batches.append(sorted_rows(rows.select("_change_type", "_commit_version", "id", "name")))

        batches = []
        stream = catalog.readStream.option("startingVersion", 3).option("maxTransactionsPerTrigger", 1).changes(keyed)
        query = stream.writeStream.option("checkpointLocation", str(tmp_path / "state")).foreachBatch(write)
        query.trigger(availableNow=True).start().awaitTermination(60)
        return batches

    assert read() == [[("delete", 3, 1, "a")], [("delete", 4, 2, "B"), ("insert", 4, 2, "BB")]]
    catalog.sql(f"DELETE FROM {keyed}")
    assert read() == [[("delete", 5, 2, "BB"), ("delete", 5, 3, "c")]]
