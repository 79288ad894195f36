"""What materialized views remember of their sources, over the wire."""

import pytest

from metastore.db.sessions import PLANNING
from metastore.thrift_gen.hive_metastore import ttypes as types


def table(name, kind="MANAGED_TABLE", metadata=None):
    serde = types.SerDeInfo("orc", "org.apache.hadoop.hive.ql.io.orc.OrcSerde", {})
    sd = types.StorageDescriptor(cols=[types.FieldSchema("a", "int")], location=None, serdeInfo=serde,
                                 inputFormat="i", outputFormat="o")
    return types.Table(dbName="d", tableName=name, owner="u", tableType=kind, sd=sd, partitionKeys=[], parameters={},
                       creationMetadata=metadata, rewriteEnabled=True)


def metadata(*sources, **more):
    return types.CreationMetadata("hive", "d", "v", {f"d.{one.tableName}" for one in sources}, sourceTables=[
        types.SourceTable(one, 1, 0, 0) for one in sources] or None, **more)


@pytest.fixture
def d(client, tmp_path):
    client.create_database(types.Database(name="d"))
    for name in ("t", "u"):
        client.create_table(table(name))
    client.create_table(table("v", "MATERIALIZED_VIEW", metadata(client.get_table("d", "t"), client.get_table("d", "u"))))
    client.create_table(table("w", "MATERIALIZED_VIEW", metadata(client.get_table("d", "u"))))
    return client


def counts(client, view):
    remembered = client.get_table("d", view).creationMetadata
    return {one.table.tableName: (one.insertedCount, one.updatedCount, one.deletedCount)
            for one in remembered.sourceTables}


def test_changed_rows_are_counted_in_each_view_on_the_table(d):
    t = d.get_table("d", "t").id
    d.update_transaction_statistics(types.UpdateTransactionalStatsRequest(t, 5, 2, 1))
    d.update_transaction_statistics(types.UpdateTransactionalStatsRequest(t, 10, 0, 0))
    d.update_transaction_statistics(types.UpdateTransactionalStatsRequest(999999, 10, 0, 0))

    assert counts(d, "v") == {"t": (16, 2, 1), "u": (1, 0, 0)}
    assert counts(d, "w") == {"u": (1, 0, 0)}


def test_a_rebuild_replaces_what_the_view_remembers(d):
    d.update_creation_metadata("hive", "D", "V", metadata(d.get_table("d", "t"), validTxnList="5:5::"))
    remembered = d.get_table("d", "v").creationMetadata
    assert (remembered.tablesUsed, remembered.validTxnList) == ({"d.t"}, "5:5::")
    assert remembered.materializationTime > 1_700_000_000_000

    d.update_creation_metadata("hive", "d", "v", metadata(materializationTime=7))
    assert d.get_table("d", "v").creationMetadata.materializationTime == 7


@pytest.mark.parametrize("name", ["t", "nothing"])
def test_what_is_no_view_remembers_nothing(d, name):
    with pytest.raises(types.MetaException, match=f"d.{name} is not a materialized view"):
        d.update_creation_metadata("hive", "d", name, metadata())


def test_who_changes_a_table_looks_at_views_only(d, database):
    """Hive 4 counts after each INSERT."""
    with database.begin() as pg:
        for name, value in PLANNING.items():
            pg.sql(f"SET LOCAL {name} = {value}")
        plan = pg.sql("EXPLAIN SELECT 1 FROM tables WHERE type = 'MATERIALIZED_VIEW'"
                      " AND creation_metadata -> 'sourceTables' @> '[]'")

    assert "tables_materialized_views_idx" in str(plan)
