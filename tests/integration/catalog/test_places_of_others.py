"""A table's directory is its own: nobody gets a place in it or around it, and nobody's removal takes what is there."""

import pytest
from thrift.protocol.TBase import TExceptionBase

from metastore.thrift_gen.hive_metastore import ttypes as T

ACID = {"transactional": "true", "transactional_properties": "default"}
PURGED = {"EXTERNAL": "TRUE", "external.table.purge": "true"}
DELTA = "delta_0000001_0000001_0000"


@pytest.fixture
def victim(d):
    """Yield the location of a transactional table with a committed delta; check in the end that only this delta is there."""
    table = d.create("victim", sd={"inputFormat": "org.apache.hadoop.hive.ql.io.orc.OrcInputFormat",
                                   "outputFormat": "org.apache.hadoop.hive.ql.io.orc.OrcOutputFormat"}, parameters=ACID)  # fmt: skip
    rows = d.path(table.sd.location) / DELTA / "bucket_00000"
    rows.parent.mkdir()
    rows.write_text("rows")
    yield table.sd.location
    assert rows.read_text() == "rows"
    assert [path.name for path in rows.parent.parent.iterdir()] == [DELTA]


def sd_at(hive, location):
    return hive.sd(location=location)


def partition_at(hive, location, table="p", value="1"):
    return T.Partition([value], "d", table, sd=sd_at(hive, location))


WAYS = {
    "create_table": lambda d, at: d.create("t", sd={"location": at}),
    "an external one": lambda d, at: d.create("t", sd={"location": at}, parameters=PURGED),
    "create_table_req": lambda d, at: d.create_table_req(T.CreateTableRequest(d.table("t", sd={"location": at}))),
    "create_table_with_environment_context": lambda d, at: d.create_table_with_environment_context(
        d.table("t", sd={"location": at}), None),
    "create_table_with_constraints": lambda d, at: d.create_table_with_constraints(
        d.table("t", sd={"location": at}), [], [], [], [], [], []),
    "alter_table": lambda d, at: d.alter_table("d", "mine", d.table("mine", sd={"location": at})),
    "alter_table_with_cascade": lambda d, at: d.alter_table_with_cascade("d", "mine", d.table("mine", sd={"location": at}), True),
    "alter_table_with_environment_context": lambda d, at: d.alter_table_with_environment_context(
        "d", "mine", d.table("mine", sd={"location": at}), T.EnvironmentContext({})),
    "alter_table_req": lambda d, at: d.alter_table_req(
        T.AlterTableRequest(dbName="d", tableName="mine", table=d.table("mine", sd={"location": at}))),
    "add_partition": lambda d, at: d.add_partition(partition_at(d, at)),
    "add_partition_with_environment_context": lambda d, at: d.add_partition_with_environment_context(partition_at(d, at), None),
    "add_partitions": lambda d, at: d.add_partitions([partition_at(d, at)]),
    "add_partitions_req": lambda d, at: d.add_partitions_req(T.AddPartitionsRequest("d", "p", [partition_at(d, at)], False)),
    "add_partitions_pspec": lambda d, at: d.add_partitions_pspec([T.PartitionSpec(
        dbName="d", tableName="p", partitionList=T.PartitionListComposingSpec([partition_at(d, at)]))]),
    "alter_partition": lambda d, at: d.alter_partition("d", "p", partition_at(d, at, value="0")),
    "alter_partition_with_environment_context": lambda d, at: d.alter_partition_with_environment_context(
        "d", "p", partition_at(d, at, value="0"), None),
    "alter_partitions": lambda d, at: d.alter_partitions("d", "p", [partition_at(d, at, value="0")]),
    "alter_partitions_req": lambda d, at: d.alter_partitions_req(
        T.AlterPartitionsRequest(dbName="d", tableName="p", partitions=[partition_at(d, at, value="0")])),
    "rename_partition": lambda d, at: d.rename_partition("d", "p", [], partition_at(d, at, value="0")),
    "create_database": lambda d, at: d.create_database(T.Database(name="e", locationUri=at)),
    "its managed location": lambda d, at: d.create_database(T.Database(name="e", managedLocationUri=at)),
    "alter_database": lambda d, at: d.alter_database("other", T.Database(name="other", locationUri=at)),
    "create_catalog": lambda d, at: d.create_catalog(T.CreateCatalogRequest(T.Catalog(name="c", locationUri=at))),
    "alter_catalog": lambda d, at: d.alter_catalog(T.AlterCatalogRequest("mine", T.Catalog(name="mine", locationUri=at))),
}


@pytest.fixture
def attacker(d):
    """Create objects that any caller may have made before, and return the calls."""
    d.create("mine")
    d.create("p", keys="k:string")
    d.add("0", table="p")
    d.create_database(T.Database(name="other"))
    d.create_catalog(T.CreateCatalogRequest(T.Catalog(name="mine", locationUri=f"file:{d.warehouse.parent}/cat")))
    return d


def refusals(hive, ways, place):
    """Return the error of each way of giving a place; None: the place was given."""
    said = {}
    for way in ways:
        try:
            WAYS[way](hive, place)
        except TExceptionBase as error:
            said[way] = str(error)
        else:
            said[way] = None
    return said


def test_no_place_inside_of_a_table(attacker, victim):
    local = victim.removeprefix("file:")
    for place in (f"{victim}/{DELTA}", f"{victim}/new/{DELTA}", f"FILE://localhost{local}//x/../{DELTA}/"):
        said = refusals(attacker, WAYS, place)
        given = [way for way, text in said.items() if "lies inside the directory of table d.victim" not in (text or "")]
        assert given == [], said


def test_no_table_or_partition_at_a_transactional_one_or_around_it(attacker, victim):
    ways = [way for way in WAYS if "database" not in way and "catalog" not in way and "managed" not in way]
    for place, words in ((victim, "is the directory of table d.victim, and a transactional table shares"),
                         (victim.rsplit("/", 1)[0], "and nothing else may lie in the directory of a table")):
        said = refusals(attacker, ways, place)
        assert [way for way, text in said.items() if words not in (text or "")] == [], said


def test_a_table_that_becomes_transactional_shares_its_directory_with_nobody(d):
    """Its first base would cover the other's files, and the Cleaner remove them."""
    place = d.create("plain").sd.location
    d.create("t", sd={"location": place}, parameters={"EXTERNAL": "TRUE"})
    table = d.get_table("d", "plain")
    table.sd.inputFormat, table.sd.outputFormat = (f"org.apache.hadoop.hive.ql.io.orc.Orc{kind}putFormat" for kind in ("In", "Out"))
    table.parameters = {**table.parameters, **ACID}
    with pytest.raises(T.MetaException, match=r"is the directory of table d\.t, and a transactional table"):
        d.alter_table("d", "plain", table)
    d.drop_table("d", "t", False)
    d.alter_table("d", "plain", table)


def test_what_may_share(d):
    """As Hive has it: plain tables at one place, partitions anywhere in their own table, a table where its database is."""
    place = d.create("plain", keys="k:string").sd.location
    d.create("again", sd={"location": place}, parameters={"EXTERNAL": "TRUE"})
    for number, own in enumerate((place, f"{place}/x", f"{place}/x/y", f"{place}/k=9")):
        d.add_partition(partition_at(d, own, "plain", str(number)))
    alone = f"file:{d.warehouse.parent}/alone"
    d.create_database(T.Database(name="e", locationUri=alone))
    d.create("t", db="e", sd={"location": alone}, parameters={"EXTERNAL": "TRUE"})


@pytest.fixture
def placed(d):
    """Return a function that stores a location past the checks, as if the object were from before they existed."""

    def put(location, table="old", partition=None):
        with d.moves.db.begin() as pg:
            if partition is None:
                pg.sql("UPDATE tables SET location = %s WHERE name = %s", (location, table))
            else:
                pg.sql("UPDATE partitions SET location = %s WHERE name = %s", (location, partition))

    return put


REMOVALS = {
    "truncate of a partition": lambda d: d.truncate_table("d", "op", ["k=1"]),
    "truncate of the partitioned table": lambda d: d.truncate_table("d", "op", None),
    "truncate_table": lambda d: d.truncate_table("d", "old", None),
    "rename": lambda d: d.rename_partition("d", "op", ["1"], T.Partition(["2"], "d", "op", sd=d.sd())),
    "drop_partition": lambda d: d.drop_partition("d", "op", ["1"], True),
    "drop_table": lambda d: d.drop_table("d", "old", True),
    "drop_database": lambda d: d.drop_database("f", True, True),
}


@pytest.mark.parametrize("inside", ["", f"/{DELTA}", f"/{DELTA}/x", "/.."], ids=["at", "inside", "deeper", "around"])
def test_what_was_given_a_place_there_before_takes_nothing_along(d, victim, placed, inside):
    location = victim.rsplit("/", 1)[0] if inside == "/.." else victim + inside
    d.database("f")
    d.create("old")
    d.create("old2", db="f")
    d.create("op", keys="k:string")
    d.create("op2", db="f", keys="k:string")
    for db, table in (("d", "op"), ("f", "op2")):
        d.add("1", db=db, table=table)
    for table in ("old", "old2"):
        placed(location, table)
    placed(location, partition="k=1")
    for name, removal in REMOVALS.items():
        try:
            removal(d)
        except TExceptionBase as error:
            assert "is used by" in str(error), (name, error)
            refused = True
        else:
            refused = False
        assert refused is name.startswith(("truncate", "rename")), name
        assert (d.path(victim) / DELTA / "bucket_00000").exists(), name


def test_truncating_a_transactional_table_hides_nothing_of_another(d, victim, placed):
    """Its empty base would be read by the other, too."""
    d.create("old", sd={"inputFormat": "org.apache.hadoop.hive.ql.io.orc.OrcInputFormat",
                        "outputFormat": "org.apache.hadoop.hive.ql.io.orc.OrcOutputFormat"}, parameters=ACID)  # fmt: skip
    placed(victim)
    with pytest.raises(TExceptionBase, match=r"d\.old cannot be truncated: .* is used by table d\.victim"):
        d.truncate_table_req(T.TruncateTableRequest("d", "old", writeId=5))


def test_a_partition_takes_nothing_of_another_of_its_table(d):
    table = d.create("t", keys="k:string")
    for number, own in enumerate(("k=1", "k=1/inner", "")):
        d.add_partition(partition_at(d, f"{table.sd.location}/{own}".rstrip("/"), "t", str(number)))
    kept = d.path(table.sd.location) / "k=1" / "inner" / "file"
    kept.write_text("x")
    for removal in (lambda: d.truncate_table("d", "t", ["k=0"]), lambda: d.truncate_table("d", "t", ["k=2"])):
        with pytest.raises(TExceptionBase, match=r"is used by partition d\.t/k="):
            removal()
    d.drop_partition("d", "t", ["0"], True)
    assert kept.exists()
    d.truncate_table("d", "t", None)
    assert not kept.exists()


def test_a_rename_takes_nothing_of_another_along(d, victim, placed):
    table = d.create("t")
    placed(f"{table.sd.location}/inside", "victim")
    with pytest.raises(TExceptionBase, match=r"is used by table d\.victim"):
        d.alter_table("d", "t", d.table("renamed", sd={"location": table.sd.location}))
    placed(victim, "victim")


def test_plain_tables_at_one_place_are_dropped_and_not_truncated(d):
    place = d.create("a").sd.location
    d.create("b", sd={"location": place})
    (d.path(place) / "file").write_text("x")
    with pytest.raises(T.MetaException, match=r"d\.b cannot be truncated: .* is used by table d\.a .* as well"):
        d.truncate_table("d", "b", None)
    d.drop_table("d", "b", True)
    assert (d.path(place) / "file").exists()
    d.truncate_table("d", "a", None)
    assert list(d.path(place).iterdir()) == []
