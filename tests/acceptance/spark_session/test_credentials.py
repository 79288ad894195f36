"""A statement changes files with the credentials of Spark's JVM alone: those of this process may only list and read."""

import pytest

from metastore.files import Files
from metastore.spark import acid

pytestmark = pytest.mark.spark


class ReadOnly(Files):
    """As for a user who may list and read the warehouse, and nothing that is not published yet."""

    def open(self, uri):
        if "/.acid_stage" in uri:
            raise PermissionError(f"{uri} cannot be read with these credentials")
        return super().open(uri)

    def _require_own(self, uri, *, inside=False):
        """Every method that changes something asks here first."""
        raise PermissionError(f"{uri} cannot be changed with these credentials")


@pytest.fixture
def session(spark, monkeypatch):
    monkeypatch.setattr("metastore.spark.session.Files", ReadOnly)
    with acid(spark) as session:
        yield session


def values(session, name):
    return sorted(row.a for row in session.table(name).collect())


@pytest.mark.parametrize("stored_as", ["ORC", "PARQUET"])
def test_rows_of_an_insert_only_table_are_written_and_counted(session, db, stored_as):
    session.sql(f"CREATE TABLE {db}.t (a INT) STORED AS {stored_as} TBLPROPERTIES "
                "('transactional'='true', 'transactional_properties'='insert_only')")
    assert session.sql(f"INSERT INTO {db}.t VALUES (1), (2)").collect()[0][0] == 2
    assert values(session, f"{db}.t") == [1, 2]


def test_what_an_undone_statement_had_published_is_removed(session, db, lakehouse):
    session.sql(f"CREATE TABLE {db}.t (a INT) STORED AS ORC TBLPROPERTIES ('transactional'='true')")
    [place] = lakehouse.warehouse.glob(f"{db}.db/t")
    with pytest.raises(ZeroDivisionError), session.transaction():
        session.sql(f"INSERT INTO {db}.t VALUES (1)")
        assert [path.name for path in place.glob("delta_*")] == ["delta_0000001_0000001_0000"]
        raise ZeroDivisionError
    assert list(place.glob("delta_*")) == []


def test_a_plain_table_is_converted(session, db, spark, lakehouse):
    spark.sql(f"CREATE TABLE {db}.p (a INT) STORED AS ORC")
    spark.sql(f"INSERT INTO {db}.p VALUES (1), (2)")
    session.sql(f"ALTER TABLE {db}.p SET TBLPROPERTIES ('transactional'='true')")
    assert [path.name for path in lakehouse.warehouse.glob(f"{db}.db/p/0*")] != []
    assert values(session, f"{db}.p") == [1, 2]
