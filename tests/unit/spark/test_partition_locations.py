"""Which partitions the metastore is asked for."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from metastore.acid.table_kinds import TableKind
from metastore.acid_tables.conjunction import conjunction
from metastore.acid_tables.partitions import PartitionPlace, partition_key
from metastore.acid_tables.table import AcidTable, HiveColumn
from metastore.client.partitions import Locations, partition_places
from metastore.errors import InvalidOperationError
from metastore.ids import TableName
from metastore.partition_names import DEFAULT_PARTITION, make_name

TABLE = AcidTable(TableName("hive", "db", "t"), TableKind.FULL_ACID, "file:/w/t", (HiveColumn("id", "int"),),
                  (HiveColumn("p", "int"), HiveColumn("q", "string")), (), 0, 2, "orc", {})


class Metastore:
    """A metastore with partitions; remembers how many it was asked for, each time."""

    def __init__(self, partitions: list[tuple[str, str]]) -> None:
        self.found = {make_name(["p", "q"], values): SimpleNamespace(values=list(values), sd=SimpleNamespace(
            location=f"file:/elsewhere/{place}")) for place, values in enumerate(partitions)}
        self.asked: list[int] = []
        self.texts: list[list[str]] = []
        self.added: list[str] = []
        self.types = SimpleNamespace(Partition=SimpleNamespace, AddPartitionsRequest=SimpleNamespace)

    def get_table(self, _db: str, _table: str) -> SimpleNamespace:
        return SimpleNamespace(sd=SimpleNamespace())

    def add_partitions_req(self, request: SimpleNamespace) -> None:
        self.added += [part.sd.location for part in request.parts]

    def get_partitions(self, _db: str, _table: str, _limit: int) -> list[SimpleNamespace]:
        self.asked.append(len(self.found))
        return list(self.found.values())

    def get_partition_names(self, _db: str, _table: str, _limit: int) -> list[str]:
        return list(self.found)

    def get_partition_names_ps(self, _db: str, _table: str, texts: list[str], _limit: int) -> list[str]:
        self.texts.append(texts)
        return [name for name, one in self.found.items() if all(text in ("", value) for text, value in zip(texts, one.values, strict=True))]

    def get_partitions_by_names(self, _db: str, _table: str, names: list[str]) -> list[SimpleNamespace]:
        self.asked.append(len(names))
        return [self.found[name] for name in names if name in self.found]


PARTITIONS = [("3", "a"), ("03", "a/b=c%"), ("4", DEFAULT_PARTITION), (DEFAULT_PARTITION, "it's")]


@pytest.mark.parametrize(("conditions", "values", "texts"), [
    ([["q", "=", "a"], ["p", ">", "0"]], [("3", "a")], ["", "a"]), ([["q", "in", "a", "b"]], [("3", "a")], None),
    ([["q", ">", "a"]], [("03", "a/b=c%"), (None, "it's")], None), ([["q", "=", "it's"]], [(None, "it's")], None), ([["p", "=", "3"]], [("3", "a"), ("03", "a/b=c%")], None),
    ([["q", "=", "b"], ["q", "=", "a"]], [], ["", "a"]),
    ([["q", "=", "__HIVE_DEFAULT_PARTITION__"]], [], ["", DEFAULT_PARTITION])])
def test_a_text_that_a_key_must_equal_is_looked_up_by_the_metastore(
        conditions: list[list[str]], values: list[tuple[str | None, ...]], texts: list[str] | None) -> None:
    client = Metastore(PARTITIONS)
    where = conjunction(conditions, TABLE.partition_keys)

    assert [place.values for place in partition_places(client, TABLE, where)] == values  # type: ignore[arg-type]
    assert client.texts == ([] if texts is None else [texts])


@pytest.mark.parametrize(("conditions", "values", "asked_for"), [
    ([["p", "=", "3"]], [("3", "a"), ("03", "a/b=c%")], [2]), ([["q", "=", "a/b=c%"]], [("03", "a/b=c%")], [1]),
    ([["q", "is null"]], [("4", None)], [1]), ([["p", "is null"], ["q", ">", "a"]], [(None, "it's")], [1]), ([["p", ">", "4"]], [], []),
    ([["p", "=", "x"]], [("3", "a"), ("03", "a/b=c%"), ("4", None), (None, "it's")], [4])])
def test_only_partitions_that_conditions_leave_are_asked_for(
        conditions: list[list[str]], values: list[tuple[str | None, ...]], asked_for: list[int]) -> None:
    client = Metastore(PARTITIONS)
    where = conjunction(conditions, TABLE.partition_keys)

    assert [place.values for place in partition_places(client, TABLE, where)] == values  # type: ignore[arg-type]
    assert client.asked == asked_for


def test_a_few_partitions_that_are_written_are_asked_for_by_name_many_at_once() -> None:
    client = Metastore([(str(p), "a") for p in range(100)])
    places = Locations(client, TABLE, [PartitionPlace("p=0/q=a", ("0", "a"), "file:/known")], list)  # type: ignore[arg-type]

    found = [places[partition_key([str(p), "a"])] for p in (0, 1, 2, 1, 1000)]
    assert found == ["file:/known", "file:/elsewhere/1", "file:/elsewhere/2", "file:/elsewhere/1", "file:/w/t/p=1000/q=a"]
    assert client.asked == [1, 1, 1]
    for p in range(3, 150):
        assert places[partition_key([str(p), "a"])] == (f"file:/elsewhere/{p}" if p < 100 else f"file:/w/t/p={p}/q=a")
    assert client.asked == [1] * 32 + [100]
    assert places.new == {"p=1000/q=a", *(f"p={p}/q=a" for p in range(100, 150))}


def test_of_the_partitions_that_a_statement_wrote_the_new_are_registered_and_all_are_named() -> None:
    client = Metastore([("03", "a"), ("4", "a")])
    places = Locations(client, TABLE, [], list)  # type: ignore[arg-type]

    keys = [partition_key([p, "a"]) for p in ("5", "3", "4", "1")]
    assert places.registered(keys) == ["p=03/q=a", "p=1/q=a", "p=4/q=a", "p=5/q=a"]
    assert client.added == ["file:/w/t/p=5/q=a", "file:/w/t/p=1/q=a"]


def test_a_partition_is_known_by_what_its_values_mean() -> None:
    client = Metastore([("03", "a"), ("5", "a"), ("05", "a"), (" 6", "a"), ("7", "07"), ("x", "b"), (" 8", "a"), ("8", "a")])
    reads = {" 6": "6", " 8": "8", "x": None}
    asked: list[list[tuple]] = []

    def read(found: list[tuple]) -> list[tuple]:
        """As Spark does, with casts that do not fail."""
        asked.append(found)
        return [(reads[p], q) for p, q in found]

    places = Locations(client, TABLE, (), read)  # type: ignore[arg-type]
    key = partition_key(["3", "a"])

    assert (places[key], places.names[key], places.new) == ("file:/elsewhere/0", "p=03/q=a", set())
    assert places[partition_key(["7", "7"])] == "file:/w/t/p=7/q=7"
    assert places[partition_key(["6", "a"])] == "file:/elsewhere/3"
    assert places[partition_key([None, "b"])] == f"file:/w/t/p={DEFAULT_PARTITION}/q=b"
    assert asked[0] == [(" 6", "a"), ("x", "b"), (" 8", "a")]

    whole = Locations(client, TABLE, partition_places(client, TABLE), read)  # type: ignore[arg-type]
    for values, reason in ((["5", "a"], "p=5/q=a and p=05/q=a of db.t are the same"), (["8", "a"], "p= 8/q=a and p=8/q=a of db.t are"),
                           (["9", "a"], "calls it p=9/q=a")):
        with pytest.raises(InvalidOperationError, match=reason):
            whole.existing[partition_key(values)]
    assert [whole.existing[partition_key(values)] for values in (["3", "a"], ["6", "a"], [None, "b"])] == [f"file:/elsewhere/{n}" for n in (0, 3, 5)]


CHARS = replace(TABLE, partition_keys=(HiveColumn("p", "int"), HiveColumn("q", "char(3)")))


@pytest.mark.parametrize(("conditions", "values"), [
    ([["q", "=", "a"]], [("1", "a"), ("1", "a  "), ("2", "a ")]), ([["q", "in", "a  ", "b"], ["p", "=", "1"]], [("1", "a"), ("1", "a  "), ("1", "b")]),
    ([["q", "<", "a "]], [("1", "a"), ("1", "a  "), ("2", "a "), ("1", "b")]), ([["q", "=", "c"]], [])])
def test_blanks_at_the_end_of_a_char_leave_no_partition_out(conditions: list[list[str]], values: list[tuple[str, str]]) -> None:
    """What is before or after it depends on the engine's settings, so that nothing is left out for its order."""
    client = Metastore([("1", "a"), ("1", "a  "), ("2", "a "), ("1", "b")])
    assert [place.values for place in partition_places(client, CHARS, conjunction(conditions, CHARS.partition_keys))] == values  # type: ignore[arg-type]
    assert client.texts == []


def test_rows_go_to_the_partition_of_their_char_however_it_is_spelled() -> None:
    client = Metastore([("1", "a"), ("1", "b  ")])
    places = Locations(client, CHARS, [], list)  # type: ignore[arg-type]
    assert [places[partition_key(["1", text])] for text in ("a  ", "b", "d  ")] == ["file:/elsewhere/0", "file:/elsewhere/1", "file:/w/t/p=1/q=d  "]
