import ast
from pathlib import Path

import pytest

from metastore.thrift_server.dispatch import registry
from metastore.thrift_server.dispatch.call import coalesced, immediate
from metastore.thrift_server.dispatch.registry import handlers_of
from metastore.thrift_server.wire.interface import METHODS


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


def rpcs():
    """Each method of the handlers, with where it is."""
    for path in sorted((Path(registry.__file__).parents[1] / "handlers").glob("*.py")):
        for definition in ast.parse(path.read_text()).body:
            if isinstance(definition, ast.ClassDef) and definition.name.endswith("Handlers"):
                for method in definition.body:
                    if isinstance(method, ast.FunctionDef) and method.name in METHODS:
                        yield f"{path.stem}.{method.name}", method


def is_log(statement):
    return isinstance(statement, ast.Expr) and ast.unparse(statement).startswith(("'", '"', "call.log("))


def test_handlers_have_one_shape():
    """See metastore/thrift_server/handlers/__init__.py."""
    shapes = dict(rpcs())
    assert len(shapes) > 150
    wrong = []
    for name, method in shapes.items():
        first, *arguments = method.args.args[1:]
        many = any("coalesced" in ast.unparse(decorator) for decorator in method.decorator_list)
        used = any(isinstance(node, ast.Name) and node.id == first.arg for node in ast.walk(method))
        if first.arg != ("calls" if many else "call" if used else "_call"):
            wrong.append(f"{name}: the first argument is {first.arg}")
        if any("Any" in ast.unparse(typed) for typed in (method.returns, *(each.annotation for each in arguments))):
            wrong.append(f"{name}: an argument or the answer has no type of the IDL")
        statements = [statement for statement in method.body if not is_log(statement)]
        if len(statements) > 4:
            wrong.append(f"{name}: {len(statements)} statements")
        if any(isinstance(statement, ast.While | ast.Delete) for statement in statements):
            wrong.append(f"{name}: a loop or a del")
    assert wrong == []
