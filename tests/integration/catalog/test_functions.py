"""Functions (CAT-F1)."""

import pytest
from thrift.Thrift import TApplicationException

from metastore.thrift_gen.hive_metastore import ttypes as T

JAR = T.ResourceUri(T.ResourceType.JAR, "hdfs://x/a.jar")


def function(name="f", db="d", **fields):
    return T.Function(**{"functionName": name, "dbName": db, "className": "a.b.F", "ownerType": T.PrincipalType.USER,
                         "functionType": T.FunctionType.JAVA, **fields})


def test_every_field(d):  # CAT-256, CAT-261
    d.create_function(function("MyF", ownerName="bob", ownerType=T.PrincipalType.ROLE, createTime=5, resourceUris=[JAR]))
    found = d.get_function("D", "MYF")
    assert found.createTime > 5
    assert found == T.Function(
        functionName="myf", dbName="d", className="a.b.F", ownerName="bob", ownerType=T.PrincipalType.ROLE,
        createTime=found.createTime, functionType=T.FunctionType.JAVA, resourceUris=[JAR], catName="hive")


def test_minimal(d):  # CAT-257
    d.create_function(function())
    found = d.get_function("d", "f")
    assert (found.ownerName, found.resourceUris) == (None, [])


@pytest.mark.parametrize(("fields", "error"), [
    ({"className": None}, T.InvalidObjectException), ({"functionName": "a b"}, T.InvalidObjectException),  # CAT-258
    ({"functionName": ""}, T.InvalidObjectException), ({"functionName": None}, T.MetaException),  # CAT-259
    ({"dbName": None}, T.MetaException), ({"ownerType": None}, T.MetaException),
    ({"functionType": None}, T.MetaException), ({"dbName": "nope"}, T.NoSuchObjectException)])  # CAT-260
def test_refused(d, fields, error):
    with pytest.raises(error):
        d.create_function(function(**fields))
    assert d.get_functions("d", "*") == []


def test_duplicate(d):  # CAT-260
    d.create_function(function())
    with pytest.raises(T.AlreadyExistsException):
        d.create_function(function("F"))


def test_missing(d):  # CAT-261, CAT-262
    for db, name in (("d", "nope"), ("nope", "f"), ("@nope#d", "f")):
        with pytest.raises(T.NoSuchObjectException) as missing:
            d.get_function(db, name)
        assert f"{name} does not exist" in missing.value.message
        with pytest.raises(T.NoSuchObjectException):
            d.drop_function(db, name)
    with pytest.raises(T.MetaException):
        d.get_function("d", None)


def test_lists(d):  # CAT-263, CAT-266
    for name in ("f_to_find_1", "f_to_find_2", "f_hidden"):
        d.create_function(function(name))
    assert d.get_functions("d", "*_to_find_*") == ["f_to_find_1", "f_to_find_2"]
    assert len(d.get_functions("d", "*_to_find_*|*_hidden*")) == 3
    assert d.get_functions("d", None) == d.get_functions("@hive#d", "F_*") == d.get_functions("d", "*")
    assert d.get_functions("nope", "*") == d.get_functions("d", "") == []
    with pytest.raises(T.MetaException):
        d.get_functions(None, "*")
    assert [found.functionName for found in d.get_all_functions().functions] == ["f_hidden", "f_to_find_1", "f_to_find_2"]
    assert d.get_functions_req(T.GetFunctionsRequest(dbName="d", pattern="f_h*")).function_names == ["f_hidden"]
    [found] = d.get_functions_req(T.GetFunctionsRequest(dbName="d", pattern="f_h*", returnNames=False)).functions
    assert found == d.get_function("d", "f_hidden")


def test_alter(d):  # CAT-264
    d.database("other")
    d.create_function(function(resourceUris=[JAR]))
    before = d.get_function("d", "f")
    d.alter_function("D", "F", function("g", "other", className="c.G", ownerName="eve", ownerType=T.PrincipalType.GROUP))
    found = d.get_function("other", "g")
    assert (found.className, found.ownerName, found.ownerType) == ("c.G", "eve", T.PrincipalType.GROUP)
    assert (found.createTime, found.resourceUris) == (before.createTime, [JAR])
    with pytest.raises(T.NoSuchObjectException):
        d.get_function("d", "f")


@pytest.mark.parametrize(("name", "new", "error"), [  # CAT-265
    ("nope", function("h"), T.MetaException), ("f", function("g"), T.MetaException),
    ("f", function("a b"), (TApplicationException, T.MetaException)),
    ("f", function(className=None), (TApplicationException, T.MetaException)),
    ("f", function(db="nope"), (TApplicationException, T.MetaException)),
    ("f", function(catName="nope"), T.MetaException)], ids=[
        "unknown", "taken", "odd name", "no class", "no database", "other catalog"])
def test_alter_refused(d, name, new, error):
    d.create_function(function())
    d.create_function(function("g"))
    with pytest.raises(error):
        d.alter_function("d", name, new)
    assert d.get_functions("d", "*") == ["f", "g"]


def test_drop(d):
    d.create_function(function())
    d.drop_function("d", "F")
    assert d.get_functions("d", "*") == []
