"""What ``metastore.client.scan`` reads without Spark is what the session reads."""

import pytest

from metastore.client import scan

pytestmark = pytest.mark.spark


def test_the_same_rows_with_and_without_spark(acid_session, db):
    name = f"{db}.both"
    acid_session.sql(f"CREATE TABLE {name} (id INT, price DECIMAL(9,2), at TIMESTAMP, who STRUCT<a: INT, tags: ARRAY<STRING>>) "
                     "PARTITIONED BY (day DATE) CLUSTERED BY (id) INTO 2 BUCKETS STORED AS ORC TBLPROPERTIES ('transactional'='true')")
    acid_session.sql(f"INSERT INTO {name} SELECT id, id / 4, TIMESTAMP_NTZ'2026-01-02 03:04:05.5', named_struct('a', id, 'tags', array('x', NULL)), "
                     "DATE'2026-01-01' + CAST(id % 3 AS INT) FROM range(40)")
    acid_session.sql(f"UPDATE {name} SET price = NULL, who = NULL WHERE id % 5 = 0")
    acid_session.sql(f"DELETE FROM {name} WHERE id % 7 = 0")
    acid_session.sql(f"ALTER TABLE {name} ADD COLUMNS (more BIGINT)")
    acid_session.sql(f"INSERT INTO {name} SELECT 100, 1, NULL, NULL, 7, NULL")

    session = sorted(repr((row.id, row.price, row.at, row.who and row.who.asDict(), row.more, row.day)) for row in acid_session.table(name).collect())
    found = scan(name, client=acid_session.client).to_arrow().to_pylist()

    assert sorted(repr((row["id"], row["price"], row["at"], row["who"], row["more"], row["day"])) for row in found) == session
    assert len(found) == 35
    assert scan(name, 1, client=acid_session.client).to_arrow().num_rows == 40
