"""Schemas, their versions and SerDes (CAT-R1), as the metastore of Hive 4.2.0 answers on PostgreSQL."""

import pytest

from metastore.thrift_gen.hive_metastore import ttypes as T

HIVE = T.SchemaType.HIVE
BACKWARD, FORWARD = T.SchemaCompatibility.BACKWARD, T.SchemaCompatibility.FORWARD
LATEST, ALL = T.SchemaValidation.LATEST, T.SchemaValidation.ALL


def schema(name="S", db="D", cat="hive", **fields):
    return T.ISchema(**{"schemaType": HIVE, "name": name, "catName": cat, "dbName": db, "compatibility": BACKWARD,
                        "validationLevel": LATEST, "canEvolve": True, **fields})


def named(name="S", db="D", cat="hive"):
    return T.ISchemaName(cat, db, name)


def version(number=1, of="S", **fields):
    columns = [T.FieldSchema("Aa", "int", "ns"), T.FieldSchema("b", "string")]
    return T.SchemaVersion(**{"schema": named(of), "version": number, "createdAt": 123, "cols": columns, **fields})


def described(number=1, name="S"):
    return T.SchemaVersionDescriptor(named(name), number)


@pytest.fixture
def s(d):
    d.create_ischema(schema())
    return d


def test_a_schema_is_found_by_its_name_in_lower_case(s):
    kept = T.ISchema(HIVE, "s", "hive", "d", BACKWARD, LATEST, True)
    assert s.get_ischema(named()) == s.get_ischema(named("s", "d", None)) == kept
    s.create_ischema(schema("s6", canEvolve=None, schemaGroup="g", description="x"))
    found = s.get_ischema(named("S6"))
    assert (found.canEvolve, found.schemaGroup, found.description) == (False, "g", "x")


@pytest.mark.parametrize(("wrong", "error"), [
    (schema(), T.AlreadyExistsException), (schema(db="nosuch"), T.NoSuchObjectException), (schema("x", cat="other"), T.NoSuchObjectException),
    (schema(name=None), T.MetaException), (schema("x", db=None), T.MetaException), (schema("x", schemaType=None), T.MetaException),
    (schema("x", compatibility=None), T.MetaException), (schema("x", validationLevel=None), T.MetaException), (None, T.MetaException)])
def test_a_wrong_schema_is_not_created(s, wrong, error):
    with pytest.raises(error):
        s.create_ischema(wrong)
    with pytest.raises(T.NoSuchObjectException):
        s.get_ischema(named("x"))


def test_alter_changes_what_may_change(s):
    s.alter_ischema(T.AlterISchemaRequest(named(), schema(
        "renamed", schemaType=T.SchemaType.AVRO, compatibility=FORWARD, validationLevel=ALL, canEvolve=False, schemaGroup="g", description="x")))
    s.alter_ischema(T.AlterISchemaRequest(named(), schema(compatibility=FORWARD, validationLevel=ALL, canEvolve=None)))
    assert s.get_ischema(named()) == T.ISchema(HIVE, "s", "hive", "d", FORWARD, ALL, False, "g", "x")


@pytest.mark.parametrize(("request_", "error"), [
    ((named("x"), schema()), T.NoSuchObjectException), ((None, schema()), T.MetaException), ((named(), None), T.MetaException),
    ((named(), schema(compatibility=None)), T.MetaException)])
def test_a_wrong_alter_changes_nothing(s, request_, error):
    before = s.get_ischema(named())
    with pytest.raises(error):
        s.alter_ischema(T.AlterISchemaRequest(*request_))
    assert s.get_ischema(named()) == before


def test_versions_are_ordered_by_number(s):  # CAT-285
    for number in (2, 10, 1):
        s.add_schema_version(version(number))
    assert s.get_schema_latest_version(named()).version == 10
    assert [one.version for one in s.get_schema_all_versions(named())] == [1, 2, 10]
    s.drop_schema_version(described(10))
    assert s.get_schema_latest_version(named()).version == 2


def test_names_that_begin_alike_are_other_schemas(s):
    for name in ("s1", "s~", "s\x7f", "s.1"):
        s.create_ischema(schema(name))
        s.add_schema_version(version(of=name))
    with pytest.raises(T.NoSuchObjectException):
        s.get_schema_all_versions(named())
    s.drop_ischema(named())


def test_a_version_with_every_field(s):
    serde = T.SerDeInfo("Serde1", "lib", {"a": "b"}, "desc", "ser", "deser", T.SerdeType.SCHEMA_REGISTRY)
    s.add_schema_version(version(3, state=T.SchemaVersionState.INITIATED, description="d", schemaText="t", fingerprint="f", name="n", serDe=serde))
    assert s.get_schema_version(described(3)) == T.SchemaVersion(
        T.ISchemaName("hive", "d", "s"), 3, 123, [T.FieldSchema("aa", "int", "ns"), T.FieldSchema("b", "string")],
        T.SchemaVersionState.INITIATED, "d", "t", "f", "n", serde)
    assert s.get_serde(T.GetSerdeRequest("Serde1")) == serde
    s.add_schema_version(version(4, serDe=T.SerDeInfo("Serde1", "other")))
    assert s.get_schema_version(described(4)).serDe == T.SerDeInfo("Serde1", "other", {})
    assert s.get_serde(T.GetSerdeRequest("Serde1")) == serde


@pytest.mark.parametrize(("wrong", "error"), [
    (version(), T.AlreadyExistsException), (version(2, "x"), T.NoSuchObjectException), (version(2, schema=None), T.MetaException),
    (version(2, cols=[T.FieldSchema(None, "int")]), T.MetaException), (version(2, serDe=T.SerDeInfo()), T.MetaException), (None, T.MetaException)])
def test_a_wrong_version_is_not_added(s, wrong, error):
    s.add_schema_version(version())
    with pytest.raises(error):
        s.add_schema_version(wrong)
    assert [one.version for one in s.get_schema_all_versions(named())] == [1]


def test_what_there_is_none_of(s):
    for asked in (named(), named("x"), named("s", cat="other"), named("s", db="")):
        for ask in (s.get_schema_latest_version, s.get_schema_all_versions):
            with pytest.raises(T.NoSuchObjectException):
                ask(asked)
    for ask in (s.get_schema_version, s.drop_schema_version):
        with pytest.raises(T.NoSuchObjectException):
            ask(described(7))
        with pytest.raises(T.MetaException):
            ask(T.SchemaVersionDescriptor(None, 1))
    with pytest.raises(T.NoSuchObjectException):
        s.drop_ischema(named("x"))


def test_a_schema_with_versions_stays(s):
    s.create_ischema(schema("other"))
    s.add_schema_version(version())
    with pytest.raises(T.InvalidOperationException, match=r"hive\.d\.s has versions"):
        s.drop_ischema(named())
    s.drop_ischema(named("other"))
    s.drop_schema_version(described())
    s.drop_ischema(named())
    with pytest.raises(T.NoSuchObjectException):
        s.get_ischema(named())


def test_schemas_by_columns(s):
    s.add_schema_version(version(1))
    s.add_schema_version(version(2, cols=[T.FieldSchema("c", "int", "ns")]))
    s.add_schema_version(version(3, cols=None))

    def found(**asked):
        return [one.version for one in s.get_schemas_by_cols(T.FindSchemasByColsRqst(**asked)).schemaVersions]

    assert found(colName="AA") == [1]
    assert found(colNamespace="ns") == [1, 2]
    assert found(colNamespace="NS") == found(colName="b", colNamespace="ns") == found(colName="") == found(colName="aa", type="string") == []
    assert found(colNamespace="ns", colName="c", type="int") == [2]
    for wrong in (T.FindSchemasByColsRqst(), T.FindSchemasByColsRqst(type="int")):
        with pytest.raises(T.MetaException):
            s.get_schemas_by_cols(wrong)


def test_serdes_have_names_as_they_were_sent(s):
    s.add_serde(T.SerDeInfo("Serde2", "x"))
    assert s.get_serde(T.GetSerdeRequest("Serde2")) == T.SerDeInfo("Serde2", "x", {})
    for name in ("serde2", "", " Serde2"):
        with pytest.raises(T.NoSuchObjectException):
            s.get_serde(T.GetSerdeRequest(name))
    with pytest.raises(T.AlreadyExistsException):
        s.add_serde(T.SerDeInfo("Serde2", "y"))
    with pytest.raises(T.MetaException):
        s.add_serde(T.SerDeInfo(None, "y"))


def test_a_version_gets_a_serde_and_a_state(s):
    s.add_schema_version(version())
    s.add_serde(T.SerDeInfo("Serde2", "x"))
    s.map_schema_version_to_serde(T.MapSchemaVersionToSerdeRequest(described(), "Serde2"))
    for state in (T.SchemaVersionState.DELETED, T.SchemaVersionState.INITIATED, None):
        s.set_schema_version_state(T.SetSchemaVersionStateRequest(described(), state))
    found = s.get_schema_version(described())
    assert (found.serDe.name, found.state) == ("Serde2", T.SchemaVersionState.INITIATED)
    for place, serde in ((described(), "nosuch"), (described(7), "Serde2")):
        with pytest.raises(T.NoSuchObjectException):
            s.map_schema_version_to_serde(T.MapSchemaVersionToSerdeRequest(place, serde))
    with pytest.raises(T.NoSuchObjectException):
        s.set_schema_version_state(T.SetSchemaVersionStateRequest(described(7), 1))
    with pytest.raises(T.MetaException):
        s.set_schema_version_state(T.SetSchemaVersionStateRequest(None, 1))


def test_a_database_with_a_schema_is_not_empty_and_takes_it_along(s):
    s.add_schema_version(version())
    s.add_serde(T.SerDeInfo("Serde2", "x"))
    with pytest.raises(T.InvalidOperationException, match="is not empty"):
        s.drop_database("d", False, False)
    s.drop_database("d", False, True)
    s.database()
    for ask in (lambda: s.get_ischema(named()), lambda: s.get_schema_version(described())):
        with pytest.raises(T.NoSuchObjectException):
            ask()
    assert s.get_serde(T.GetSerdeRequest("Serde2")).serializationLib == "x"
