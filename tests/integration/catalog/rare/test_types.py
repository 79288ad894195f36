"""Types (CAT-R5), as the metastore of Hive 4.2.0 answers on PostgreSQL."""

import pytest

from metastore.thrift_gen.hive_metastore import ttypes as T


def test_a_type_is_made_once_and_dropped_as_often_as_asked(hive):
    columns = [T.FieldSchema("Aa", "int", "c"), T.FieldSchema("b", "nosuch")]
    assert hive.create_type(T.Type("MyType", "int")) is True
    assert hive.create_type(T.Type("s", fields=columns)) is True
    assert hive.get_type("MyType") == T.Type("MyType", "int", None, [])
    assert hive.get_type("s") == T.Type("s", None, None, columns)
    with pytest.raises(T.AlreadyExistsException):
        hive.create_type(T.Type("MyType", "string"))
    assert [hive.drop_type("MyType"), hive.drop_type("MyType")] == [True, True]
    for unknown in ("MyType", "S", ""):
        with pytest.raises(T.NoSuchObjectException):  # CAT-290
            hive.get_type(unknown)


@pytest.mark.parametrize(("wrong", "error"), [
    (T.Type("", "int"), T.InvalidObjectException), (T.Type("a b"), T.InvalidObjectException), (T.Type("a/b"), T.InvalidObjectException),
    (T.Type(None, "int"), T.MetaException), (T.Type("t", fields=[T.FieldSchema(None, "int")]), T.MetaException),
    (T.Type("t", fields=[T.FieldSchema("x", "int"), T.FieldSchema("x", "int")]), T.MetaException), (None, T.MetaException)])
def test_a_wrong_type_is_not_made(hive, wrong, error):
    with pytest.raises(error):
        hive.create_type(wrong)


def test_no_name_is_no_type(hive):
    for call in (hive.get_type, hive.drop_type):
        with pytest.raises(T.MetaException):
            call(None)
