"""Which classes may store an insert-only table: every door by which a descriptor comes in."""

from copy import deepcopy

import pytest

from metastore.config import CatalogSettings
from metastore.thrift_gen.hive_metastore import ttypes as T
from tests.integration.catalog.conftest import ORC

ONLY = {"transactional": "true", "transactional_properties": "insert_only"}
LAZY = "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe"
TEXT = {"inputFormat": "org.apache.hadoop.mapred.TextInputFormat",
        "outputFormat": "org.apache.hadoop.hive.ql.io.HiveIgnoreKeyTextOutputFormat", "serdeInfo": T.SerDeInfo(None, LAZY, {})}
AVRO = {"inputFormat": "org.apache.hadoop.hive.ql.io.avro.AvroContainerInputFormat",
        "outputFormat": "org.apache.hadoop.hive.ql.io.avro.AvroContainerOutputFormat",
        "serdeInfo": T.SerDeInfo(None, "org.apache.hadoop.hive.serde2.avro.AvroSerDe", {"avro.schema.url": "http://h/s"})}
FOREIGN = [
    {**TEXT, "inputFormat": "org.apache.hadoop.mapred.lib.db.DBInputFormat"}, {**TEXT, "outputFormat": "evil.Output"},
    {**TEXT, "serdeInfo": T.SerDeInfo(None, "evil.SerDe", {})},
    {**TEXT, "inputFormat": ORC["inputFormat"]}, {**TEXT, "inputFormat": "evil.OrcInputFormat"}, AVRO]
REFUSED = "classes|avro.schema.url"


@pytest.fixture
def catalog_settings(tmp_path):
    return CatalogSettings(warehouse=str(tmp_path / "wh"), storage_classes=(("my.Input", "my.Output", "my.SerDe"),))


@pytest.mark.parametrize("sd", FOREIGN)
def test_a_table_is_not_made_with_them_nor_altered_to_have_them(d, sd):
    with pytest.raises(T.MetaException, match=REFUSED):
        d.create(sd=sd, parameters=ONLY)
    assert d.get_all_tables("d") == []
    table = d.create(sd=TEXT, parameters=ONLY)
    for field, value in sd.items():
        setattr(table.sd, field, value)
    with pytest.raises(T.MetaException, match=REFUSED):
        d.alter_table("d", "t", table)
    assert d.get_table("d", "t").sd.inputFormat == TEXT["inputFormat"]


def test_a_plain_table_with_them_does_not_become_insert_only(d):
    d.create(sd=FOREIGN[0])
    table = d.get_table("d", "t")
    table.parameters |= ONLY
    with pytest.raises(T.MetaException, match="DBInputFormat"):
        d.alter_table("d", "t", table)
    d.create("p", sd=TEXT, keys="k:string")
    d.add("1", table="p")
    partition = d.get_partition("d", "p", ["1"])
    partition.sd.serdeInfo.serializationLib = "evil.SerDe"
    d.alter_partition("d", "p", partition)
    table = d.get_table("d", "p")
    table.parameters |= ONLY
    with pytest.raises(T.MetaException, match="partition of hive.d.p|partition of d.p"):
        d.alter_table("d", "p", table)


@pytest.mark.parametrize("sd", FOREIGN)
def test_a_partition_is_not_added_with_them_nor_altered_to_have_them(d, sd):
    d.create(sd=TEXT, keys="k:string", parameters=ONLY)
    d.add("1")
    made = d.get_partition("d", "t", ["1"])
    foreign = deepcopy(made)
    for field, value in sd.items():
        setattr(foreign.sd, field, value)
    with pytest.raises(T.MetaException, match=REFUSED):
        d.alter_partition("d", "t", foreign)
    with pytest.raises(T.MetaException, match=REFUSED):
        d.rename_partition("d", "t", ["1"], T.Partition(["2"], "d", "t", sd=foreign.sd))
    other = T.Partition(["3"], "d", "t", sd=deepcopy(foreign.sd))
    other.sd.location = None
    with pytest.raises(T.MetaException, match=REFUSED):
        d.add_partition(other)
    assert d.get_partition_names("d", "t", -1) == ["k=1"]
    assert d.get_partition("d", "t", ["1"]).sd == made.sd
    assert not (d.warehouse / "d.db" / "t" / "k=3").exists()


def test_a_catalog_of_another_name_has_the_same_rule(d):
    d.create_catalog(T.CreateCatalogRequest(T.Catalog("c", locationUri=str(d.warehouse / "c"))))
    d.create_database(T.Database("e", catalogName="c"))
    with pytest.raises(T.MetaException, match="DBInputFormat"):
        d.create_table(d.table(db="e", sd=FOREIGN[0], parameters=ONLY, catName="c"))


def test_what_was_there_before_may_be_altered_otherwise(d, database):
    """An upgrade finds tables with any class; its reader and its Worker refuse them."""
    d.create(sd=TEXT, parameters=ONLY, keys="k:string")
    d.add("1")
    for table in ("tables", "partition_descriptors"):
        database.once(f"""UPDATE {table} SET sd = jsonb_set(sd, '{{inputFormat}}', '"old.Input"')""")
    table = d.get_table("d", "t")
    table.parameters["comment"] = "new"
    d.alter_table("d", "t", table)
    partition = d.get_partition("d", "t", ["1"])
    partition.parameters["x"] = "y"
    d.alter_partition("d", "t", partition)
    assert d.get_partition("d", "t", ["1"]).parameters["x"] == "y"


def test_the_operator_allows_more(d):
    more = {"inputFormat": "my.Input", "outputFormat": "my.Output", "serdeInfo": T.SerDeInfo(None, "my.SerDe", {})}
    d.create(sd=more, parameters=ONLY, keys="k:string")
    d.add("1")
    with pytest.raises(T.MetaException, match="classes"):
        d.create("u", sd={**more, "serdeInfo": TEXT["serdeInfo"]}, parameters=ONLY)


def test_other_tables_name_what_they_like(d):
    d.create(sd=FOREIGN[0])
    d.create("e", sd=FOREIGN[1], parameters={"EXTERNAL": "TRUE"}, tableType="EXTERNAL_TABLE")
