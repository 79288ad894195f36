"""Stored procedures and packages (CAT-R2), as the metastore of Hive 4.2.0 answers on PostgreSQL."""

import pytest

from metastore.thrift_gen.hive_metastore import ttypes as T


def procedure(name="MyProc", db="D", cat="hive", **fields):
    return T.StoredProcedure(**{"name": name, "dbName": db, "catName": cat, "ownerName": "ann", "source": "s", **fields})


def package(name="MyPack", db="D", cat="hive", **fields):
    return T.AddPackageRequest(**{"packageName": name, "dbName": db, "catName": cat, "ownerName": "ann", "header": "h", "body": "b", **fields})


def asked(name="MyProc", db="d", cat="hive"):
    return T.StoredProcedureRequest(cat, db, name)


def found(name="MyPack", db="d", cat="hive"):
    return T.GetPackageRequest(cat, db, name)


def test_a_procedure_is_replaced_and_dropped_by_its_name_as_sent(d):
    d.create_stored_procedure(procedure())
    d.create_stored_procedure(procedure(source="new", ownerName="bob"))
    assert d.get_stored_procedure(asked(db="D", cat="HIVE")) == T.StoredProcedure("MyProc", "d", "hive", "bob", "new")
    for wrong in (asked("myproc"), asked("MYPROC"), asked(db="nosuch"), asked(cat="other"), asked("")):
        d.drop_stored_procedure(wrong)
        with pytest.raises(T.NoSuchObjectException):
            d.get_stored_procedure(wrong)
    d.drop_stored_procedure(asked())
    with pytest.raises(T.NoSuchObjectException, match=r"stored procedure named hive\.d\.MyProc"):
        d.get_stored_procedure(asked())


def test_a_package_is_replaced_and_dropped_by_its_name_as_sent(d):
    d.add_package(package())
    d.add_package(package(body="new", ownerName="bob"))
    assert d.find_package(found(db="D", cat="HIVE")) == T.Package("hive", "d", "MyPack", "bob", "h", "new")
    for wrong in ("mypack", "nosuch", ""):
        d.drop_package(T.DropPackageRequest("hive", "d", wrong))
        with pytest.raises(T.NoSuchObjectException):
            d.find_package(found(wrong))
    d.drop_package(T.DropPackageRequest("hive", "D", "MyPack"))
    with pytest.raises(T.NoSuchObjectException):
        d.find_package(found())


@pytest.mark.parametrize("fields", [{"name": None}, {"db": None}, {"ownerName": None}, {"source": None}])
def test_a_procedure_lacks_nothing(d, fields):
    with pytest.raises(T.MetaException, match="Null .* is not allowed"):
        d.create_stored_procedure(procedure(**fields))


@pytest.mark.parametrize("fields", [{"name": None}, {"db": None}, {"ownerName": None}, {"header": None}, {"body": None}])
def test_a_package_lacks_nothing(d, fields):
    with pytest.raises(T.MetaException, match="Null .* is not allowed"):
        d.add_package(package(**fields))


def test_both_need_their_database(d):
    for place in ({"db": "nosuch"}, {"cat": "other"}, {"db": ""}):
        with pytest.raises(T.NoSuchObjectException, match="no database"):
            d.create_stored_procedure(procedure(**place))
        with pytest.raises(T.MetaException, match="no database"):  # add_package declares nothing else
            d.add_package(package(**place))


def test_names_are_listed_in_order(d):
    d.database("e")
    for name, db in (("b", "d"), ("", "d"), ("a b.c", "d"), ("Up", "D"), ("x", "e")):
        d.create_stored_procedure(procedure(name, db))
        d.add_package(package(name, db))
    for list_, request in ((d.get_all_stored_procedures, T.ListStoredProcedureRequest), (d.get_all_packages, T.ListPackageRequest)):
        assert list_(request("hive", "D")) == ["", "Up", "a b.c", "b"]
        assert list_(request("HIVE")) == ["", "Up", "a b.c", "b", "x"]
        assert [list_(request(*none)) for none in (("hive", "nosuch"), ("other", "d"), ("hive", ""), ("hive", "d*"))] == [[]] * 4


@pytest.mark.parametrize(("make", "kind"), [(lambda d: d.create_stored_procedure(procedure()), "stored procedures"), (lambda d: d.add_package(package()), "packages")])
def test_a_database_that_has_one_is_not_empty_and_takes_it_along(d, make, kind):
    make(d)
    with pytest.raises(T.InvalidOperationException, match=f"One or more {kind} exist"):
        d.drop_database("d", False, False)
    d.drop_database("d", False, True)
    d.database()
    assert d.get_all_stored_procedures(T.ListStoredProcedureRequest("hive")) == d.get_all_packages(T.ListPackageRequest("hive")) == []
