"""What Hive's classes are told of a table, and which tables are refused; CREATE TABLE's row formats."""

from types import SimpleNamespace

import pytest

from metastore.acid_tables.serde_storage import (
    AVRO,
    CLASSES,
    JSON,
    LAZY_SIMPLE,
    OPEN_CSV,
    TEXT_INPUT,
    TEXT_OUTPUT,
    HiveStorage,
    require_alterable,
    require_same_types,
    seen_columns,
)
from metastore.catalog.rules.storage_classes import LISTED
from metastore.errors import InvalidOperationError

LAZY_BINARY = "org.apache.hadoop.hive.serde2.lazybinary.LazyBinarySerDe"


def storage(serde=LAZY_SIMPLE, columns=(("a", "int"), ("b", "string")), told=None, parameters=None, input_format=TEXT_INPUT):
    info = SimpleNamespace(parameters=told, serializationLib=serde)
    return HiveStorage.of(SimpleNamespace(serdeInfo=info, inputFormat=input_format, outputFormat=TEXT_OUTPUT), columns,
                          parameters or {})


def told(one):
    """Parse the text as ``java.util.Properties`` does: every character is written as Java's escape."""
    lines = (line.partition("=") for line in one.text().splitlines())
    return {key.encode("ascii").decode("unicode_escape"): value.encode("ascii").decode("unicode_escape")
            for key, _, value in lines}


def test_a_serde_is_told_the_columns_then_its_parameters_then_those_of_the_table():
    one = storage(columns=[("a", "varchar(3)"), ("b", "array<char(2)>")], told={"field.delim": "\t", "escape.delim": "serde", "mapkey.delim": "é=\n"},
                  parameters={"escape.delim": "table", "collection.delim": ";"})
    assert told(one) == {
        "columns": "a,b", "columns.types": "string:array<string>", "columns.comments": "\0", "field.delim": "\t", "escape.delim": "table", "mapkey.delim": "é=\n",
        "collection.delim": ";", "colelction.delim": ";", "serialization.lib": LAZY_SIMPLE, "acid.input": TEXT_INPUT,
        "acid.output": TEXT_OUTPUT}
    assert told(one.raw())["acid.raw"] == "true"
    odd = told(storage(columns=[("a,b", "int"), ("c", "int")]))
    assert (odd["columns"], odd["column.name.delimiter"]) == ("a,b\0c", "\0")
    assert storage(told=None, parameters={"field.delim": "v"}) == storage(told={"field.delim": "v"})


@pytest.mark.parametrize("key", ["fs.s3a.bucket.b.endpoint", "mapreduce.jdbc.url", "avro.schema.url", "columns", "acid.input", "acid.raw",
                                 "serialization.lib", "serialization.class", "io.compression.codecs", "spark.jars"])
def test_parameters_that_are_not_known_reach_no_class(key):
    """All that a SerDe is told goes into the configuration of the file systems as well."""
    assert "evil" not in told(storage(told={key: "evil"})).values()
    assert "evil" not in told(storage(parameters={key: "evil"})).values()


def test_a_schema_at_a_url_is_not_opened():
    for one in (storage(AVRO, told={"avro.schema.url": "http://h/s"}), storage(AVRO, parameters={"avro.schema.url": "http://h/s"})):
        with pytest.raises(InvalidOperationError, match="never opened here"):
            one.require_readable("db.t")
        assert one.has_own_columns


def test_every_format_of_a_statement_is_listed():
    assert set(CLASSES.values()) <= LISTED


def test_types_that_a_serde_makes_of_others():
    declared = [("a", "int"), ("b", "array<tinyint>"), ("c", "SMALLINT")]
    assert [kind for _, kind in seen_columns(OPEN_CSV, declared)] == ["string"] * 3
    assert [kind for _, kind in seen_columns(AVRO, declared)] == ["int", "array<int>", "int"]
    assert seen_columns(LAZY_SIMPLE, declared) == declared


@pytest.mark.parametrize(("parameters", "may_be_read", "reason"), [
    ({"skip.header.line.count": "1"}, True, "first lines"), ({"skip.header.line.count": "x"}, True, "no number"),
    ({"skip.footer.line.count": "2"}, False, "end of each file"), ({"line.delim": "|"}, True, "line's end"),
    ({"textinputformat.record.delimiter": "\0"}, True, "line's end"),
])
def test_tables_whose_lines_are_not_all_rows(parameters, may_be_read, reason):
    one = storage(parameters=parameters)
    if may_be_read:
        one.require_readable("db.t")
    else:
        with pytest.raises(InvalidOperationError, match=reason):
            one.require_readable("db.t")
    with pytest.raises(InvalidOperationError, match=reason):
        one.require_writable("db.t")
    storage(parameters={"skip.header.line.count": " 0 ", "line.delim": "\n"}).require_writable("db.t")


def test_characters_in_avro_are_not_written():
    with pytest.raises(InvalidOperationError, match="Column b of db.t is CHAR or VARCHAR"):
        storage(AVRO, [("a", "string"), ("b", "array<varchar(3)>")]).require_writable("db.t")
    storage(AVRO).require_writable("db.t")
    storage(LAZY_SIMPLE, [("b", "char(3)")]).require_writable("db.t")


def test_partitions_whose_files_hold_other_types():
    columns = [("a", "bigint"), ("b", "string"), ("c", "int")]
    require_same_types("p=1", storage(LAZY_SIMPLE, columns), [("a", "int"), ("b", "string")])
    require_same_types("p=1", storage(LAZY_BINARY, columns), [("a", "bigint"), ("b", "varchar(3)")])
    with pytest.raises(InvalidOperationError, match="p=1 was written when a was int"):
        require_same_types("p=1", storage(LAZY_BINARY, columns), [("a", "int"), ("b", "string")])


BEFORE = [("a", "int"), ("b", "string")]


@pytest.mark.parametrize(("serde", "after", "is_refused"), [
    (LAZY_SIMPLE, [*BEFORE, ("c", "int")], False), (LAZY_SIMPLE, [("x", "int"), ("b", "string")], False),
    (LAZY_SIMPLE, [("a", "bigint"), ("b", "string")], False), (LAZY_SIMPLE, BEFORE[::-1], True),
    (LAZY_SIMPLE, BEFORE[:1], True), (LAZY_SIMPLE, [BEFORE[0], ("c", "int"), BEFORE[1]], True),
    (JSON, BEFORE[::-1], False), (JSON, [*BEFORE, ("c", "int")], False), (JSON, [BEFORE[0], ("c", "int")], True),
    (LAZY_BINARY, [("a", "bigint"), ("b", "string")], True), (LAZY_BINARY, [*BEFORE, ("c", "int")], False),
])
def test_columns_of_tables_with_files(serde, after, is_refused):
    if is_refused:
        with pytest.raises(InvalidOperationError, match="has files"):
            require_alterable("db.t", storage(serde), BEFORE, after)
    else:
        require_alterable("db.t", storage(serde), BEFORE, after)


def test_columns_of_a_schema_of_avro_are_its_own():
    one = storage(AVRO, parameters={"avro.schema.literal": "{}"})
    with pytest.raises(InvalidOperationError, match="Avro schema"):
        require_alterable("db.t", one, BEFORE, [*BEFORE, ("c", "int")])
