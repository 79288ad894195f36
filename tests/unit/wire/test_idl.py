"""The generated package against the facts read from Hive's own classes."""

import inspect
import re

import pytest

from metastore.thrift_gen.enums import ENUM_FIELDS
from metastore.thrift_gen.fb303 import ttypes as fb303_types
from metastore.thrift_gen.hive_metastore import constants, ttypes
from metastore.thrift_gen.operators import MetastoreOperators
from metastore.thrift_gen.operators import ttypes as operators_types
from metastore.thrift_gen.required import REQUIRED
from metastore.thrift_server.wire.interface import METHODS
from tests.support.thrift_server import facts

FACTS = facts()
SCALARS = {2: "bool", 3: "byte", 4: "double", 6: "i16", 8: "i32", 10: "i64"}


def type_name(ttype, arguments):
    if ttype == 11:
        return "binary" if arguments == "BINARY" else "string"
    if ttype == 12:
        return arguments[0].__name__
    if ttype in (14, 15):
        return f"{'list' if ttype == 15 else 'set'}<{type_name(*arguments[:2])}>"
    if ttype == 13:
        return f"map<{type_name(*arguments[:2])},{type_name(*arguments[2:4])}>"
    return SCALARS[ttype]


def without_enums(declared):
    return re.sub(r"\w+", lambda found: "i32" if found[0] in FACTS["enums"] else found[0], declared)


def default_number(field):
    enum = FACTS["enums"].get(field["type"])
    value = field.get("default")
    return enum["values"][value]["number"] if enum and value is not None else value


def fields_of(cls):
    return {entry[0]: (entry[2], type_name(entry[1], entry[3]), entry[4]) for entry in cls.thrift_spec if entry}


def expected_fields(fields):
    return {f["id"]: (f["name"], without_enums(f["type"]), default_number(f)) for f in fields}


@pytest.mark.parametrize("name", sorted(FACTS["structs"]))
def test_every_struct_has_the_fields_of_the_five_versions(name):
    struct = FACTS["structs"][name]
    cls = getattr(ttypes, name)
    assert fields_of(cls) == expected_fields(struct["fields"])
    assert issubclass(cls, Exception) == (struct["kind"] == "exception")
    assert list(REQUIRED.get(name, ())) == [f["name"] for f in struct["fields"] if f["req"] == "required"]


@pytest.mark.parametrize("name", sorted(FACTS["methods"]))
def test_every_method_has_its_arguments_result_and_exceptions(name):
    method = FACTS["methods"][name]
    module = METHODS[name]
    assert module.__name__.endswith(method["service"])
    assert fields_of(getattr(module, f"{name}_args")) == expected_fields(method["args"])
    result = getattr(module, f"{name}_result", None)
    assert (result is None) == method["oneway"]
    if result:
        found = {number: kind for number, (_, kind, _) in fields_of(result).items()}
        assert found.pop(0, "void") == without_enums(method["returns"])
        assert found == {thrown["id"]: thrown["type"] for thrown in method["throws"]}


def test_nothing_is_declared_that_no_version_has():
    own = set(MetastoreOperators.METHODS)
    assert set(METHODS) - own == set(FACTS["methods"])


def test_our_own_calls_can_never_be_taken_for_one_of_hive():
    own = set(MetastoreOperators.METHODS)
    assert own
    assert all(name.startswith("metastore_") for name in own)
    assert {name for name, _ in inspect.getmembers(operators_types, inspect.isclass)} & set(FACTS["structs"]) == set()


def test_every_field_that_is_an_enum_is_known():
    holders = {name: struct["fields"] for name, struct in FACTS["structs"].items()}
    holders |= {f"{name}_args": method["args"] for name, method in FACTS["methods"].items()}
    enums = {name: tuple((f["name"], kind) for f in fields if (kind := re.findall(r"\w+", f["type"])[-1]) in FACTS["enums"])
             for name, fields in holders.items()}
    assert {name: found for name, found in enums.items() if found} == ENUM_FIELDS


def test_required_fields_of_our_own_structs_are_known():
    assert REQUIRED["TxnOutcome"] == ("txnid", "outcome", "reason")


def test_every_enum_and_constant_has_its_value():
    for name, enum in FACTS["enums"].items():
        cls = getattr(ttypes, name, None) or getattr(fb303_types, name)
        assert {member: getattr(cls, member) for member in enum["values"]} == {
            member: value["number"] for member, value in enum["values"].items()
        }
    for name, constant in FACTS["constants"].items():
        assert getattr(constants, name) == constant["value"]


def test_exceptions_can_be_raised_through_context_managers():
    """Python sets __traceback__ on them there, which frozen exceptions refuse."""
    with pytest.raises(ttypes.NoSuchObjectException) as raised:
        raise ttypes.NoSuchObjectException("gone")
    assert raised.value.message == "gone"
