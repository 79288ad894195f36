"""Long reads, while what they read and other tables are compacted and cleaned."""

from contextlib import closing

import pytest
from pyspark.errors import PySparkException

from metastore.client import scan
from tests.support.compacting import Compacting

pytestmark = pytest.mark.spark


@pytest.fixture
def compacting(lakehouse, spark):
    with closing(Compacting(lakehouse.database_url, lakehouse.uri, spark)) as opened:
        yield opened


@pytest.fixture
def three(catalog, db):
    """Three tables of three rows and files each."""
    for table in "abc":
        catalog.sql(f"CREATE TABLE {db}.{table} (id INT) STORED AS ORC TBLPROPERTIES ('transactional'='true')")
        for number in range(3):
            catalog.sql(f"INSERT INTO {db}.{table} VALUES ({number})")
    return [f"{db}.{table}" for table in "abc"]


def cleaned(compacting, tables):
    """What the Cleaner did about tables that were compacted just now."""
    for name in tables:
        assert compacting.compact(*name.split("."), "major") == "compacted"
    report = {str(entry.entity.table): entry for entry in compacting.clean()}
    return [report[name].outcome.value for name in tables]


def test_a_long_read_is_in_the_way_of_its_own_table_only(catalog, session, three, compacting, lakehouse) -> None:
    first, kept, other = three
    frame, held = catalog.table(first), session.table(kept)
    rows, batches = frame.toLocalIterator(), scan(first, uri=lakehouse.uri).to_batches()
    found, arrow = [next(rows).id], [next(batches)]

    assert cleaned(compacting, three) == ["waiting", "waiting", "cleaned"]

    assert sorted([*found, *(row.id for row in rows)]) == [0, 1, 2]
    assert sum(batch.num_rows for batch in [*arrow, *batches]) == 3
    assert sorted(row.id for row in held.collect()) == [0, 1, 2]
    assert sorted(row.id for row in catalog.table(other).collect()) == [0, 1, 2]


def test_a_block_may_read_every_table(catalog, session, three, compacting) -> None:
    first, second, _ = three
    with session.snapshot():
        one = session.table(first)
        assert cleaned(compacting, [second]) == ["waiting"]
        assert one.join(session.table(second), "id").count() == 3


def test_a_cache_is_in_the_way_of_no_other_table(catalog, three, compacting) -> None:
    """What is read beside it later has a snapshot of its own where that of the cache is too old for it."""
    cached, second, third = three
    frame = catalog.table(cached).cache()
    frame.createOrReplaceTempView("held")
    try:
        assert frame.count() == 3
        assert cleaned(compacting, [second]) == ["cleaned"]
        assert catalog.sql(f"SELECT * FROM held JOIN {second} USING (id) JOIN {third} USING (id)").count() == 3
        assert catalog.table(cached).where("id > 0").count() == 2
        catalog.sql(f"INSERT INTO {second} VALUES (2)")
        assert cleaned(compacting, [second]) == ["cleaned"]
        assert frame.join(catalog.table(second), "id").count() == 4
    finally:
        catalog.sql("DROP VIEW held")
        frame.unpersist()


def test_a_frame_that_is_run_again_reads_what_it_read_or_says_that_it_is_gone(catalog, three, compacting) -> None:
    frame = catalog.table(three[0])
    assert sorted(row.id for row in frame.collect()) == [0, 1, 2]
    catalog.sql(f"DELETE FROM {three[0]} WHERE id = 0")
    assert sorted(row.id for row in frame.collect()) == [0, 1, 2]
    assert cleaned(compacting, three[:1]) == ["cleaned"]
    with pytest.raises(PySparkException, match="Make the DataFrame anew"):
        frame.collect()
    assert sorted(row.id for row in catalog.table(three[0]).collect()) == [1, 2]
