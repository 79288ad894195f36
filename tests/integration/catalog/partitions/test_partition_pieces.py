"""Partitions as PostgreSQL keeps them for the wire, beside the same partitions made of objects."""

import random
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from metastore.catalog.model import TableType
from metastore.catalog.service import partition_lists
from metastore.catalog.service.partition_reads import PartitionReads
from metastore.catalog.store import partitions as store
from metastore.config import CatalogSettings
from metastore.db.pieces import Sizes
from metastore.errors import MetaError
from metastore.thrift_gen.hive_metastore import ttypes
from metastore.thrift_server.dispatch.call import Call
from metastore.thrift_server.handlers.partition_reads import PartitionReadHandlers
from metastore.thrift_server.responses.streamed import InPieces
from tests.support.answers import decoded

CALLS = {
    "get_partitions": ("d", "t", -1),
    "get_partitions_req": (ttypes.PartitionsRequest(dbName="d", tblName="t", maxParts=3),),
    "get_partitions_with_auth": ("d", "t", 2, "ann", []),
    "get_partitions_pspec": ("d", "t", -1),
    "get_partitions_ps": ("d", "t", ["1"], -1),
    "get_partitions_ps_with_auth": ("d", "t", ["1", ""], 1, "ann", []),
    "get_partitions_ps_with_auth_req": (ttypes.GetPartitionsPsWithAuthRequest(
        dbName="d", tblName="t", partVals=["2"], skipColumnSchemaForPartition=True),),
    "get_partitions_by_names": ("d", "t", ["k=1/l=0", "k=none"]),
    "get_partitions_by_names_req": (ttypes.GetPartitionsByNamesRequest(
        db_name="d", tbl_name="t", names=["k=2/l=1", "k=1/l=2"]),),
    "get_partitions_by_filter": ("d", "t", "k = 1 or l like '%2'", -1),
    "get_partitions_by_filter_req": (ttypes.GetPartitionsByFilterRequest(
        dbName="d", tblName="t", filter="l = '1'", maxParts=2),),
    "get_part_specs_by_filter": ("d", "t", "k = 2", -1),
    "get_partitions_by_expr": (ttypes.PartitionsByExprRequest(dbName="d", tblName="t", expr=b"", maxParts=-1),),
    "get_partitions_spec_by_expr": (ttypes.PartitionsByExprRequest(dbName="d", tblName="t", expr=b"", maxParts=4),),
}
TEXTS = ("", "a", "'", "ä𝄞\t", "x" * 3000, "\x01")


@pytest.fixture
def in_pieces(rpc: Any) -> Any:
    """``in_pieces.get_partitions(...)``: what a client reads of it."""
    class Calls:
        def __init__(self) -> None:
            self.handlers = PartitionReadHandlers(PartitionReads(rpc.db, rpc.settings), in_pieces=True)

        def __getattr__(self, method: str) -> Any:
            def call(*args: Any) -> Any:
                answer = getattr(self.handlers, method)(Call(method, args, None), *args)
                assert isinstance(answer, InPieces)
                return decoded(method, answer)

            return call

    return Calls()


def fill(rpc: Any, table: str = "t") -> None:
    """Partitions of every kind, with three descriptors."""
    chance = random.Random(7)
    for number in range(12):
        part = rpc.part([str(number % 3), str(number // 3)], table)
        part.sd.cols = part.sd.cols[: number % 2 + 1]
        part.sd.parameters = {"x": "y"} if number % 3 else {}
        part.parameters = {f"{text[:20]}{n}": text for n, text in enumerate(chance.sample(TEXTS, number % 5))}
        part.lastAccessTime, part.writeId = number, number - 1
        rpc.add_partitions([part])


@pytest.mark.parametrize("rows", [(1, 1), (2, 3), (500, 2000)], ids=["each alone", "in a snapshot", "at once"])
def test_a_client_reads_the_same_partitions(rpc: Any, in_pieces: Any, monkeypatch: pytest.MonkeyPatch, rows: Any) -> None:
    for name, count in zip(("FIRST", "MORE", "WHOLE"), (*rows, rows[1]), strict=True):
        monkeypatch.setattr(partition_lists, name, count)
    rpc.table(keys="k:int l")
    fill(rpc)
    for method, args in CALLS.items():
        assert getattr(in_pieces, method)(*args) == getattr(rpc, method)(*args), method
    assert len(in_pieces.get_partitions("d", "t", -1)) == 12
    assert in_pieces.get_partitions("d", "t", 0) == []


def test_rows_older_than_their_bytes_are_encoded_when_they_are_read(rpc: Any, in_pieces: Any) -> None:
    rpc.table(keys="k:int l")
    fill(rpc)
    with rpc.db.begin() as pg:
        pg.sql("ALTER TABLE partitions DISABLE TRIGGER partitions_wire; UPDATE partitions SET wire = NULL; "
               "ALTER TABLE partitions ENABLE TRIGGER partitions_wire")
    assert in_pieces.get_partitions("d", "t", -1) == rpc.get_partitions("d", "t", -1)


def test_whatever_changes_a_row_changes_its_bytes(rpc: Any, in_pieces: Any) -> None:
    rpc.table(keys="k:int l")
    fill(rpc)
    with rpc.db.begin() as pg:
        pg.sql("UPDATE partitions SET parameters = '{\"a\": \"b\"}', location = NULL, write_id = 77")
    found = in_pieces.get_partitions("d", "t", -1)
    assert found == rpc.get_partitions("d", "t", -1)
    assert {(one.parameters["a"], one.sd.location, one.writeId) for one in found} == {("b", None, 77)}


def test_partitions_of_a_view_have_neither_descriptor_nor_place(rpc: Any, in_pieces: Any) -> None:
    rpc.table(keys="k", type=TableType.VIEW)
    part = rpc.part(["1"])
    part.sd = None
    rpc.add_partitions([part])
    [found] = in_pieces.get_partitions("d", "t", -1)
    assert found == rpc.get_partitions("d", "t", -1)[0]
    assert found.sd is None


@pytest.mark.parametrize("sizes", [(1, 1), (2, 3), (500, 500)], ids=["each alone", "in a snapshot", "at once"])
def test_a_client_reads_the_same_names(rpc: Any, monkeypatch: pytest.MonkeyPatch, sizes: Any) -> None:
    monkeypatch.setattr(store, "NAMES", Sizes(*sizes, sizes[1]))
    rpc.table(keys="k l")
    texts = ("", "a", "'", "ä𝄞\t", "y" * 200, "/", "b", "z", "\x01", "c")
    rpc.add_partitions([rpc.part([str(number % 3), text]) for number, text in enumerate(texts)])
    names = [name for (name,) in rpc.db.once('SELECT name FROM partitions ORDER BY name COLLATE "C"')]
    assert len(names) == 10
    of_1 = [name for name in names if name.startswith("k=1/")]
    for most, expected in ((-1, 10), (0, 10), (2, 2), (3, 3), (9, 9), (10, 10), (11, 10)):
        assert rpc.get_partition_names("d", "t", most) == names[:expected]
    assert rpc.fetch_partition_names_req(ttypes.PartitionsRequest(dbName="d", tblName="t", maxParts=0)) == []
    assert rpc.fetch_partition_names_req(ttypes.PartitionsRequest(dbName="d", tblName="t", maxParts=4)) == names[:4]
    assert rpc.get_partition_names_ps("d", "t", ["1"], -1) == of_1
    assert rpc.get_partition_names_ps("d", "t", ["1"], 2) == of_1[:2]
    assert rpc.get_partition_names_ps("d", "t", ["none"], -1) == []
    assert rpc.get_partition_names_ps_req(ttypes.GetPartitionNamesPsRequest(
        dbName="d", tblName="t", partValues=["", "a"])).names == [name for name in names if name.endswith("/l=a")]
    assert rpc.db.pool.lent == 0


def test_a_long_list_is_of_one_instant(rpc: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partition_lists, "FIRST", 2)
    monkeypatch.setattr(partition_lists, "MORE", 2)
    rpc.table(keys="k")
    rpc.add("1", "2", "3", "4", "5")
    reads = PartitionReads(rpc.db, rpc.settings)
    answer = PartitionReadHandlers(reads, in_pieces=True).get_partitions(None, "d", "t", -1)
    assert answer.length == 5
    with ThreadPoolExecutor(1) as another:
        another.submit(rpc.add, "0", "6").result()
        another.submit(rpc.drop_partition, "d", "t", ["3"], False).result()
    assert [one.values for one in decoded("get_partitions", answer)] == [["1"], ["2"], ["3"], ["4"], ["5"]]


def test_a_request_beyond_the_limit_is_refused_before_it_is_read(rpc: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partition_lists, "FIRST", 1)
    rpc.table(keys="k")
    rpc.add("1", "2", "3")
    reads = PartitionReads(rpc.db, CatalogSettings(limit_partition_request=2))
    calls = PartitionReadHandlers(reads, in_pieces=True)
    with pytest.raises(MetaError, match=r"scanned \(=3\) on table 't' exceeds limit \(=2\)"):
        calls.get_partitions(None, "d", "t", -1)
    with pytest.raises(MetaError, match=r"scanned \(=3\) on table 't' exceeds limit \(=2\)"):
        calls.get_partitions_by_filter(None, "d", "t", "k != '9'", -1)
    with monkeypatch.context() as patched, pytest.raises(MetaError, match=r"scanned \(=3\) on table 't' exceeds limit"):
        patched.delattr(store, "select_partitions")
        PartitionReadHandlers(reads).get_partitions_by_filter(None, "d", "t", "k != '9'", -1)
    assert len(decoded("get_partitions", calls.get_partitions(None, "d", "t", 2))) == 2
    assert len(decoded("get_partitions_by_names", calls.get_partitions_by_names(
        None, "d", "t", ["k=1", "k=2", "k=3"]))) == 3
    assert rpc.db.pool.lent == 0
