import pytest

from metastore.thrift_server.call import coalesced, immediate
from metastore.thrift_server.handler import handlers_of


class Locks:
    @coalesced("locks")
    def unlock(self, calls):
        return [None for _ in calls]

    @immediate
    def getName(self, call):
        return "x"

    def get_table(self, call, db, table):
        return self._private

    def _private(self):
        return 1


def test_public_methods_are_the_handlers():
    found = handlers_of(Locks())
    assert sorted(found) == ["getName", "get_table", "unlock"]
    assert found["unlock"].lane == "locks"
    assert found["getName"].immediate
    assert found["get_table"].lane is None
    assert not found["get_table"].immediate


def test_a_name_that_is_not_in_the_interface_is_a_mistake():
    class Wrong:
        def get_tabel(self, call):
            return None

    with pytest.raises(TypeError, match="get_tabel is not a method"):
        handlers_of(Wrong())


def test_two_handlers_for_one_method_are_a_mistake():
    with pytest.raises(TypeError, match="defined by Locks"):
        handlers_of(Locks(), Locks())
