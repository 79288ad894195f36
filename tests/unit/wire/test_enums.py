"""An enum's number that no version knows: unset where a field may be absent, as Java's readers take it; else refused."""

import pytest

from metastore.thrift_gen.hive_metastore import ttypes
from metastore.thrift_server.wire.codec import CODECS
from tests.integration.wire.test_fields_absent import DEEPEST, UNKNOWN, places, struct_of
from tests.support.thrift_server import facts

FACTS = facts()


def enum_fields(method):
    """Each (struct, field) of full arguments that is an enum, with what the facts say of it."""
    full = struct_of(CODECS[method].arguments_class, DEEPEST, empty=False)
    for struct, name in places(full, DEEPEST):
        declared = FACTS["structs"].get(type(struct).__name__, {"fields": FACTS["methods"][method]["args"]})["fields"]
        for field in declared:
            if field["name"] == name and field["type"].removeprefix("list<").rstrip(">") in FACTS["enums"]:
                yield full, struct, field


HAVING = [method for method in sorted(FACTS["methods"]) if any(enum_fields(method))]


@pytest.mark.parametrize("method", HAVING)
def test_an_unknown_number_is_unset_or_refused(method):
    for full, struct, field in enum_fields(method):
        name, kept = field["name"], getattr(struct, field["name"])
        enum = FACTS["enums"][field["type"].removeprefix("list<").rstrip(">")]["values"]
        known = next(value["number"] for value in enum.values())
        default = enum[field["default"]]["number"] if field.get("default") else None
        is_list = isinstance(kept, list)
        for number in (0, UNKNOWN, -1) if 0 not in {value["number"] for value in enum.values()} else (UNKNOWN,):
            setattr(struct, name, [number, known] if is_list else number)
            complaint = CODECS[method].unknown(full)
            if is_list:
                assert (complaint, getattr(struct, name)) == (None, [known])
            elif field["req"] == "required":
                assert f"{name} of {type(struct).__name__} is {number}: use one of " in complaint
            else:
                assert (complaint, getattr(struct, name)) == (None, default)
        setattr(struct, name, [known] if is_list else known)
        assert CODECS[method].unknown(full) is None


def test_the_methods_are_many_and_lock_is_among_them():
    assert len(HAVING) > 60
    assert "lock" in HAVING
    component = ttypes.LockComponent(type=ttypes.LockType.SHARED_READ, level=ttypes.LockLevel.TABLE, dbname="d", operationType=0)
    arguments = CODECS["lock"].arguments_class(ttypes.LockRequest(component=[component], user="u", hostname="h"))
    assert CODECS["lock"].unknown(arguments) is None
    assert component.operationType == ttypes.DataOperationType.UNSET
