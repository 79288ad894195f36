"""Lists of tables as PostgreSQL encodes them, beside the same made of objects."""

import json

import pytest
from thrift.protocol import fastbinary

from metastore.catalog.service.table_reads import TableReads
from metastore.catalog.store import table_lists, tables
from metastore.db.pieces import Sizes
from metastore.thrift_gen.hive_metastore import ttypes as T
from metastore.thrift_server.convert.catalog import table_to_thrift
from metastore.thrift_server.dispatch.call import Call
from metastore.thrift_server.handlers.table_reads import TableReadHandlers
from metastore.thrift_server.wire.codec import MessageSource
from tests.support.answers import decoded

OWNER_TYPE = "coalesce(nullif(owner_type, 0), 1)"


@pytest.fixture
def filled(database):
    """Tables of every kind in three databases of two catalogs."""
    with database.begin() as pg:
        pg.sql("""
            INSERT INTO catalogs (name, location) SELECT unnest(ARRAY['hive', 'other']), 'file:/w' ON CONFLICT DO NOTHING;
            INSERT INTO databases (catalog, name, location) VALUES
                ('hive', 'd0', 'file:/w/0'), ('hive', 'd1', 'file:/w/1'), ('other', 'd0', 'file:/w/2');
            INSERT INTO tables (catalog, db, name, type, sd, parameters)
            SELECT (ARRAY['hive', 'hive', 'other'])[n % 3 + 1], (ARRAY['d0', 'd1', 'd0'])[n % 3 + 1],
                   (ARRAY['t', 'tä𝄞', 'it''s', repeat('x', 130)])[n % 4 + 1] || n,
                   (ARRAY['MANAGED_TABLE', 'EXTERNAL_TABLE', 'VIRTUAL_VIEW'])[n % 2 + 1 + n / 20], '{"cols": []}',
                   (ARRAY['{}', '{"comment": ""}', '{"comment": "ö\u2028''", "x": "y"}', '{"x": ""}'])
                   [n % 4 + 1]::jsonb
            FROM generate_series(0, 29) AS n""")
    return database


COLUMNS = [{"name": "a", "type": "int"}, {"name": "ä𝄞", "type": "struct<x:int>", "comment": ""},
           {"name": "c", "type": "string", "comment": "ö\u2028'"}]
DESCRIPTORS = [
    {"cols": []},
    {"cols": COLUMNS, "inputFormat": "in", "outputFormat": "", "compressed": True, "numBuckets": -1, "serdeInfo": {
        "name": "t", "serializationLib": "ö", "parameters": {"field.delim": "\x01", "": ""}, "description": "d",
        "serializerClass": "s", "deserializerClass": "", "serdeType": 1}, "bucketCols": ["b", "a"],
     "sortCols": [{"col": "b", "order": 1}, {"col": "a", "order": 0}], "parameters": {"x": "y", "ä": "𝄞"},
     "skewedInfo": {"skewedColNames": ["b", "a"], "skewedColValues": [["2", "1"], ["ö", ""], []],
                    "skewedColValueLocationMaps": [[["2", "1"], "file:/x"], [[], ""], [["ö"], "ä"]]},
     "storedAsSubDirectories": True},
    {"cols": COLUMNS[:1], "compressed": False, "numBuckets": 0, "storedAsSubDirectories": False, "bucketCols": [], "sortCols": [],
     "parameters": {}, "serdeInfo": {"parameters": {}},
     "skewedInfo": {"skewedColNames": [], "skewedColValues": [], "skewedColValueLocationMaps": []}},
]
CREATION = {"catName": "hive", "dbName": "d0", "tblName": "v", "tablesUsed": ["d0.t"], "validTxnList": "1:2::"}
CHANGES = {
    "text": "'changed'", "integer": "7", "smallint": "3", "bigint": "7", "boolean": "NOT rewrite_enabled", "sd": f"'{json.dumps(DESCRIPTORS[2])}'",
    "partition_keys": """'[{"name": "k", "type": "int"}]'""", "parameters": """'{"y": "z"}'""", "creation_metadata": f"'{json.dumps(CREATION)}'",
    "catalog": "'other'", "type": "'MATERIALIZED_VIEW'"}
"""What a column is set to, by its name or its type."""


@pytest.fixture
def described(filled):
    """Tables that have everything, and those that have nothing; no materialized views."""
    for place, sd in enumerate(DESCRIPTORS):
        filled.once(
            "UPDATE tables SET sd = %s, partition_keys = %s, location = %s, owner = %s, owner_type = %s, create_time = %s, "
            "last_access_time = -1, retention = 9, write_id = %s, view_original_text = %s, view_expanded_text = %s, "
            "rewrite_enabled = %s WHERE id %% 4 = %s",
            (json.dumps(sd), json.dumps(COLUMNS[:place]), *[("file:/ä", "ö", 2, 2**31 - 1, 2**62, "SELECT 'ö'", "", True),
             (None, None, 0, 0, -1, None, "x", False), ("", "", 1, 1, 0, "", None, True)][place], place))
    filled.once("UPDATE tables SET wire = NULL WHERE id % 5 = 0")  # as before there was the column
    return filled


def read(table):
    """Return a table as a client reads it from objects: a field that is not sent has its default."""
    answer, spec = T.Table(), [T.Table, T.Table.thrift_spec]
    fastbinary.decode_binary(answer, MessageSource(fastbinary.encode_binary(table_to_thrift(table), spec), 0), spec)
    return answer


def both(database, wanted="*", db="d0"):
    """Both forms of an answer: what a client reads, and the same made of objects."""
    request = T.GetTablesRequest(db, tablesPattern=wanted)
    answer = TableReadHandlers(TableReads(database), None, None).get_table_objects_by_name_req(Call("", (request,), None), request)
    rows = database.once(tables.SELECT_MATCHING_TABLES, ("hive", db, ""))
    return decoded("get_table_objects_by_name_req", answer).tables, [read(tables.table_of(row)) for row in rows]


def test_descriptors_are_those_of_the_interface(described):
    """Every field that a stored descriptor may have is in one of them."""
    for cls, value in ((T.StorageDescriptor, DESCRIPTORS[1] | {"location": ""}), (T.SerDeInfo, DESCRIPTORS[1]["serdeInfo"]),
                       (T.SkewedInfo, DESCRIPTORS[1]["skewedInfo"]), (T.FieldSchema, COLUMNS[2])):
        assert {name for _, _, name, *_ in filter(None, cls.thrift_spec)} == value.keys()
    read, objects = both(described)
    assert read == objects
    assert len(read) == 10


def test_a_materialized_view_says_of_what_it_is_made(described):
    described.once("UPDATE tables SET type = 'MATERIALIZED_VIEW', creation_metadata = %s WHERE id = "
                   "(SELECT min(id) FROM tables WHERE db = 'd0' AND catalog = 'hive')", (json.dumps(CREATION),))
    read, objects = both(described)
    assert read == objects
    assert {view.creationMetadata.tablesUsed == {"d0.t"} for view in read if view.creationMetadata} == {True}


def test_each_change_of_a_column_changes_what_clients_read(described):
    """Whichever release makes it: a trigger names the columns of which it makes a row's bytes."""
    columns = described.once(
        "SELECT column_name::text, data_type::text FROM information_schema.columns "
        "WHERE table_schema = 'public' AND table_name = 'tables' AND column_name NOT IN ('wire', 'meta', 'id', 'catalog', 'db')")
    for name, kind in columns:
        before = both(described)[0]
        described.once(f"UPDATE tables SET {name} = {CHANGES.get(name) or CHANGES[kind]} WHERE id = "
                       "(SELECT max(id) FROM tables WHERE db = 'd0' AND catalog = 'hive')")
        read, objects = both(described)
        assert read == objects, name
        assert read != before, name


def test_each_change_of_what_a_line_shows_changes_it(filled):
    filled.once("INSERT INTO databases (catalog, name, location) VALUES ('other', 'd1', 'file:/w/3')")
    for change in ("name = 'other'", "type = 'VIRTUAL_VIEW'", "parameters = '{\"comment\": \"new\"}'", "parameters = '{\"comment\": \"\"}'",
                   "parameters = '{\"x\": \"y\"}'", "owner = 'zoe'", "owner = NULL", "owner_type = 2", "owner_type = 0", "catalog = 'other', db = 'd1'", "catalog = 'hive'", "db = 'd0'"):
        [line] = filled.once(
            f"UPDATE tables SET {change} WHERE id = (SELECT min(id) FROM tables) "
            f"RETURNING db, name, type, parameters ->> 'comment', catalog, owner, {OWNER_TYPE}")
        wanted = (f"@{line[4]}#{line[0]}", line[1], [])
        answer = TableReadHandlers(TableReads(filled), None, None).get_table_meta(Call("", wanted, None), *wanted)
        assert decoded("get_table_meta", answer) == [T.TableMeta(*line)], change


@pytest.mark.parametrize("sizes", [(1, 1), (3, 4), (500, 500)], ids=["each alone", "in a snapshot", "at once"])
def test_a_client_reads_the_same_lists(filled, monkeypatch, sizes):
    for kind in ("NAMES", "METAS", "TABLES"):
        monkeypatch.setattr(table_lists, kind, Sizes(*sizes, sizes[1]))
    handlers = TableReadHandlers(TableReads(filled), None, None)
    every = filled.once("SELECT db, name, type, parameters ->> 'comment', catalog, owner, "
                        f"{OWNER_TYPE} FROM tables "
                        "ORDER BY db COLLATE \"C\", name COLLATE \"C\"")

    def answered(method, *args):
        return decoded(method, getattr(handlers, method)(Call(method, args, None), *args))

    def names(db, accepts=lambda *_: True, catalog="hive"):
        return [name for of, name, kind, _, within, *_ in every if (within, of) == (catalog, db) and accepts(name, kind)]

    def metas(accepts=lambda *_: True, catalog="hive"):
        return [T.TableMeta(*row) for row in every if row[4] == catalog and accepts(*row)]

    assert len(names("d0")) == 10
    assert answered("get_all_tables", "d0") == answered("get_tables", "d0", "*") == names("d0")
    assert answered("get_all_tables", "@other#d0") == names("d0", catalog="other")
    assert answered("get_all_tables", "nope") == []
    assert answered("get_tables", "d1", "*x*|it*") == names("d1", lambda name, _: name[0] in "xi")
    assert answered("get_tables_by_type", "d1", "*", "VIRTUAL_VIEW") == names("d1", lambda _, kind: kind[0] == "V")
    assert answered("get_table_meta", "*", "*", None) == answered("get_table_meta", None, None, []) == metas()
    assert answered("get_table_meta", "@other#*", "*", []) == metas(catalog="other")
    assert answered("get_table_meta", "d1", "t*", ["VIRTUAL_VIEW", "EXTERNAL_TABLE"]) == metas(
        lambda db, name, kind, *_: db == "d1" and name[0] == "t" and kind != "MANAGED_TABLE")
    assert answered("get_table_meta", "nope", "*", []) == []
    assert {meta.comments for meta in metas()} == {None, "", "ö\u2028'"}

    def whole(accepts, catalog="hive", db="d0"):
        rows = filled.once(tables.SELECT_MATCHING_TABLES, (catalog, db, ""))
        return [read(table) for table in map(tables.table_of, rows) if accepts(table.name.table)]

    wanted = [name.upper() for name in names("d0")]
    assert len(wanted) == 10
    for count in (0, 1, 3, 4, 5, 9, 10):
        some = [*wanted[:count], "nope", *wanted[:1]]
        assert answered("get_table_objects_by_name", "D0", some) == whole(lambda name: name.upper() in some)  # noqa: B023
    assert answered("get_table_objects_by_name", "d0", []) == []
    assert answered("get_table_objects_by_name_req", T.GetTablesRequest("d0", wanted[:7])) == T.GetTablesResult(
        whole(lambda name: name.upper() in wanted[:7]))
    assert answered("get_table_objects_by_name_req", T.GetTablesRequest("d1", tablesPattern="*x*")).tables == whole(
        lambda name: "x" in name, db="d1")
    fields = T.GetTablesRequest("d0", tablesPattern="*", projectionSpec=T.GetProjectionsSpec(fieldList=["tableName"]))
    assert [each.tableName for each in answered("get_table_objects_by_name_req", fields).tables] == names("d0")
    assert filled.pool.lent == 0
