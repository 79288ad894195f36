"""Classes of the generated tables: made once, whole, whoever asks first. What they are is compared by `make idl`."""

import copy
import pickle
import threading

import pytest
from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.transport.TTransport import TMemoryBuffer

from metastore.thrift_gen.fb303 import FacebookService
from metastore.thrift_gen.hive_metastore import ThriftHiveMetastore
from metastore.thrift_gen.lazy import Types

STRUCTS = {"Tree": "1 string name = 'root', 2 list<Tree> branches, 3 map<string,Leaf> leaves", "Leaf": "1 i64 size, 3 Tree tree", "Alone": ""}


def module(structs=STRUCTS, **more):
    namespace = {"__name__": "somewhere"}
    types = Types(namespace, structs, **more)
    return namespace, types


def test_a_class_comes_with_those_that_it_contains():
    namespace, types = module()
    tree = types.get("Tree")
    leaf = namespace["Leaf"]
    assert "Alone" not in namespace
    assert tree is types.get("Tree")
    assert tree.thrift_spec[2][3][1] == [tree, tree.thrift_spec]
    assert tree.thrift_spec[3][3][3] == [leaf, leaf.thrift_spec]
    assert [entry and entry[0] for entry in leaf.thrift_spec] == [None, 1, None, 3]
    assert leaf.thrift_spec[3][3] == [tree, tree.thrift_spec]
    assert (tree().name, tree("oak").name, leaf(size=3)) == ("root", "oak", leaf(3))
    assert repr(types.get("Alone")()) == "Alone()"


def test_a_name_that_is_not_there():
    _, types = module()
    with pytest.raises(AttributeError, match="'somewhere' has no attribute 'Bush'"):
        types.get("Bush")


def test_nobody_sees_half_a_class():
    for _ in range(20):
        namespace, types = module({f"S{number}": f"1 S{number + 1} inner, 2 list<S{number}> more" for number in range(30)} | {"S30": "1 i32 n"})
        seen, start = [], threading.Barrier(4)

        def look(number, types=types, seen=seen, start=start):
            start.wait()
            cls = types.get(f"S{number}")
            seen.append(cls.thrift_spec[1][3][1] is cls.thrift_spec[1][3][0].thrift_spec)

        threads = [threading.Thread(target=look, args=[number]) for number in (0, 10, 20, 29)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert seen == [True] * 4
        assert len({id(namespace[f"S{number}"]) for number in range(31)}) == 31


def test_structs_are_copied_and_pickled():
    from metastore.thrift_gen.hive_metastore import ttypes

    table = ttypes.Table("t", "d", partitionKeys=[ttypes.FieldSchema("k", "int")])
    assert pickle.loads(pickle.dumps(table)) == copy.deepcopy(table) == table


def test_a_client_takes_the_arguments_of_the_method():
    client = ThriftHiveMetastore.Client(TBinaryProtocol(TMemoryBuffer()))
    assert isinstance(client, FacebookService.Client)
    with pytest.raises(TypeError, match=r"get_table takes 2 arguments: get_table_args\(dbname=None, tbl_name=None\)"):
        client.send_get_table("d")
    with pytest.raises(TypeError, match="unexpected keyword argument 'table'"):
        client.send_get_table("d", table="t")
    client.send_get_table("d", tbl_name="t")
    assert not hasattr(client, "recv_shutdown")
