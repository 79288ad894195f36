"""Names of constraints, keys that foreign keys refer to, and columns that are renamed."""

import pytest

from metastore.catalog.model import ConstraintColumn, ConstraintKind, Reference, Table
from metastore.catalog.rules import constraints as rules
from metastore.errors import InvalidObjectError, MetaError
from metastore.ids import TableName

T, P = TableName("hive", "d", "t"), TableName("hive", "d", "p")
PK, UQ, NN, FK, CHECK = (ConstraintKind.PRIMARY_KEY, ConstraintKind.UNIQUE, ConstraintKind.NOT_NULL, ConstraintKind.FOREIGN_KEY,
                         ConstraintKind.CHECK)


def one(kind=NN, name="", column="a", position=1, **fields):
    return ConstraintColumn(T, kind, name, column, position, **fields)


def table(*columns, keys=()):
    return Table(T, {"cols": [{"name": name} for name in columns]}, partition_keys=[{"name": name} for name in keys])


def names(*drafts, taken=()):
    return [found.name for found in rules.named(drafts, taken, 7, 123)]


def test_names_are_generated_where_there_are_none():
    assert names(one(), one(PK), one(PK, position=2), one(PK), one(CHECK)) == [
        "nn_7_123_0", "pk_7_123_0", "pk_7_123_0", "pk_7_123_1", "cc_7_123_0"]
    assert names(one(), taken=["nn_7_123_0"]) == ["nn_7_123_1"]
    assert names(one(PK, position=2), one(UQ, position=2)) == ["pk_7_123_0", "uk_7_123_0"]


def test_a_given_name_is_that_of_one_constraint():
    assert names(one(PK, "k"), one(PK, "k", position=2), one(PK, "l", position=2)) == ["k", "k", "l"]
    for drafts in ([one(name="k"), one(name="k")], [one(PK, "k"), one(UQ, "k", position=2)]):
        with pytest.raises(MetaError, match=r"hive\.d\.t has a constraint k"):
            names(*drafts)
    with pytest.raises(MetaError, match="already exists"):
        names(one(name="k"), taken=["k"])


def test_columns_must_be_there_but_for_expressions():
    rules.require_columns(table("a", keys=["b"]), [one(), one(column="b"), one(CHECK, column="nope", value="x")])
    with pytest.raises(InvalidObjectError, match="no column c"):
        rules.require_columns(table("a"), [one(column="c")])
    with pytest.raises(InvalidObjectError, match="no expression"):
        rules.require_columns(table("a"), [one(CHECK)])


def test_a_foreign_key_refers_to_a_whole_key_in_its_order():
    columns = [one(FK, "f", reference=Reference(P, column)) for column in ("x", "y")]
    keys = [one(PK, "k", "y"), one(UQ, "u", "x"), one(UQ, "u", "y", 2), one(NN, "n", "x")]
    assert rules.referenced_key(columns, keys) == "u"
    with pytest.raises(MetaError, match="no corresponding"):
        rules.referenced_key(columns[:1], keys)
    with pytest.raises(MetaError, match="no primary keys"):
        rules.referenced_key(columns, [one(NN, "n", "x")])


def test_a_foreign_key_to_itself():
    rules.require_other_columns([one(FK, reference=Reference(T, "b")), one(FK, reference=Reference(T, "a"))])
    rules.require_other_columns([one(FK, reference=Reference(P, "a"))])
    with pytest.raises(MetaError, match="its own columns"):
        rules.require_other_columns([one(FK, reference=Reference(T, "a"))])


def test_one_primary_key():
    rules.require_one_primary_key(table("a"), [one(NN, "n")], [one(PK, "k"), one(PK, "k", position=2)])
    with pytest.raises(MetaError, match=r"Primary key already exists for: hive\.d\.t"):
        rules.require_one_primary_key(table("a"), [one(PK, "k")], [one(PK, "l")])


@pytest.mark.parametrize(("old", "new", "changed"), [
    ("a b", "a b", {}),
    ("a b", "c b", {"a": "c"}),
    ("a b", "b a", {}),
    ("a b", "b c", {"a": None}),
    ("a b", "b", {"a": None}),
    ("a b", "c b d", {"a": None}),
])
def test_renamed_columns(old, new, changed):
    assert rules.renamed_columns(table(*old.split()), table(*new.split())) == changed
