"""Structs, enums and clients of the generated tables, made when they are first used.

Rule: a class made here is what the Thrift compiler writes for Python (options ``slots,dynamic``); thrift_idl/tables.py
compares the two whenever it writes tables. Most processes use a tenth of the interface: the compiler's classes for all
of it take a third of a second and ten megabytes.
"""

import ast
import re
import threading
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from types import ModuleType
from typing import Any

from thrift.protocol.TBase import TBase, TExceptionBase
from thrift.Thrift import TApplicationException, TMessageType, TType
from thrift.TRecursive import fix_spec

Fields = str
"""``1 string name, 2 list<i64> ids = None``: number, type, name and default value of each field."""
Spec = tuple[Any, ...]
Made = MutableMapping[str, Any]
Find = Callable[[str], Any]

_SCALARS = {
    "bool": (TType.BOOL, None),
    "byte": (TType.BYTE, None),
    "double": (TType.DOUBLE, None),
    "i16": (TType.I16, None),
    "i32": (TType.I32, None),
    "i64": (TType.I64, None),
    "string": (TType.STRING, "UTF8"),
    "binary": (TType.STRING, "BINARY"),
}
_FIELD = re.compile(r"(\d+) (\S+) (\w+)(?: = (\S+))?(?:, |$)")
_TOKEN = re.compile(r"\w+")
_LOCK = threading.RLock()


class Types:
    """The structs, exceptions and enums of a module, whose ``__getattr__`` and ``__dir__`` are this object's."""

    def __init__(
        self,
        namespace: Made,
        structs: Mapping[str, Fields],
        *,
        exceptions: Mapping[str, Fields] | None = None,
        enums: Mapping[str, Mapping[str, int]] | None = None,
        others: Sequence[ModuleType] = (),
    ) -> None:
        """``namespace``: the module's globals. ``others``: modules of types that these structs contain as well."""
        self._namespace, self._structs, self._enums, self._others = namespace, structs, enums or {}, others
        self._exceptions = exceptions or {}

    def names(self) -> list[str]:
        """Return what the module has, made or not."""
        return sorted({*self._namespace, *self._structs, *self._exceptions, *self._enums})

    def get(self, name: str) -> Any:
        """Make a class. Raises: AttributeError for a name that the module does not have."""
        with _LOCK:  # a class is in the module only when all of it is made
            if name not in self._namespace:
                self._make(name)
            return self._namespace[name]

    def _make(self, name: str) -> None:
        module = self._namespace["__name__"]
        if name in self._enums:
            self._namespace[name] = _enum(module, name, self._enums[name])
            return
        if name not in self._structs and name not in self._exceptions:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        made: dict[str, Any] = {}
        entries: dict[str, list[Spec]] = {}

        def find(inner: str) -> Any:
            if inner not in self._structs and inner not in self._exceptions:
                return next(getattr(module, inner) for module in self._others if hasattr(module, inner))
            if inner not in made and inner not in self._namespace:
                waiting.append(inner)
                made[inner] = self._class(module, inner)
            return made.get(inner) or self._namespace[inner]

        waiting: list[str] = []
        find(name)
        while waiting:  # structs may contain themselves
            current = waiting.pop()
            entries[current] = list(_entries(self._fields(current), find))
        for current, fields in entries.items():
            made[current].thrift_spec = _spec(fields)
        fix_spec(made.values())
        self._namespace.update(made)

    def _fields(self, name: str) -> Fields:
        return self._structs[name] if name in self._structs else self._exceptions[name]

    def _class(self, module: str, name: str) -> Any:
        found = _FIELD.findall(self._fields(name))
        names = [field for _, _, field, _ in found]
        defaults = [f"{field}={default or None}" for _, _, field, default in found]
        body: dict[str, Any] = {"__module__": module, "__slots__": tuple(names)}
        lines = [f"def __init__({', '.join(['self', *defaults])}):", *(f" self.{field} = {field}" for field in names)]
        exec("\n".join([*lines, " return"]), {}, body)  # noqa: S102 - names and values of our own tables
        if name in self._exceptions:
            return type(name, (TExceptionBase,), {**body, "__str__": _shown})
        return type(name, (TBase,), body)


def _shown(error: Any) -> str:
    return repr(error)


def _enum(module: str, name: str, values: Mapping[str, int]) -> Any:
    by_value = {number: word for word, number in values.items()}
    return type(
        name, (TBase,), {"__module__": module, **values, "_VALUES_TO_NAMES": by_value, "_NAMES_TO_VALUES": dict(values)}
    )


def _spec(entries: list[Spec]) -> Spec:
    by_number = {entry[0]: entry for entry in entries}
    return tuple(by_number.get(number) for number in range(max(by_number) + 1)) if entries else ()


def _entries(fields: Fields, find: Find) -> Iterator[Spec]:
    for number, kind, name, default in _FIELD.findall(fields):
        ttype, arguments = _type(iter(_TOKEN.findall(kind)), find)
        yield (int(number), ttype, name, arguments, ast.literal_eval(default) if default else None)


def _type(words: Iterator[str], find: Find, *, is_key: bool = False) -> tuple[int, Any]:
    """Return the type that the next words name, and what Thrift calls its arguments. ``is_key``: of a map's keys."""
    word = next(words)
    if word in _SCALARS:
        return _SCALARS[word]
    if word in {"list", "set"}:
        return TType.LIST if word == "list" else TType.SET, (*_type(words, find), is_key)
    if word == "map":
        return TType.MAP, (*_type(words, find, is_key=True), *_type(words, find), is_key)
    return TType.STRUCT, [find(word), None]


Methods = Mapping[str, tuple[Fields, Fields | None]]
"""Arguments and results by method; no results: a oneway call. Field 0 of the results is what the method returns."""


class Service:
    """The structs of a service's methods, and its client, for a module's ``__getattr__`` and ``__dir__``."""

    def __init__(
        self, namespace: Made, methods: Methods, types: Sequence[ModuleType], base: ModuleType | None = None
    ) -> None:
        """``types``: modules of types that methods use. ``base``: the module of the service that this one extends."""
        structs = {f"{name}_args": arguments for name, (arguments, _) in methods.items()}
        structs |= {f"{name}_result": results for name, (_, results) in methods.items() if results is not None}
        self._structs = Types(namespace, structs, others=types)
        self._namespace, self._methods, self._base = namespace, methods, base

    def names(self) -> list[str]:
        """Return what the module has, made or not."""
        return [*self._structs.names(), "Client"]

    def get(self, name: str) -> Any:
        """Make a class. Raises: AttributeError for a name that the module does not have."""
        if name != "Client":
            return self._structs.get(name)
        with _LOCK:
            if name not in self._namespace:
                self._namespace[name] = self._client()
            return self._namespace[name]

    def _client(self) -> Any:
        body: dict[str, Any] = {"__module__": self._namespace["__name__"]}
        for name, (_, results) in self._methods.items():
            body |= _calls(name, self.get, is_oneway=results is None)
        return type("Client", (_Client if self._base is None else self._base.Client,), body)


class _Client:
    def __init__(self, iprot: Any, oprot: Any = None) -> None:
        self._iprot = iprot
        self._oprot = iprot if oprot is None else oprot
        self._seqid = 0


def _calls(name: str, struct: Find, *, is_oneway: bool) -> dict[str, Any]:
    """Return the three functions of a method: the call, its sending, and the receiving of its answer."""

    def send(self: Any, *args: Any, **kwargs: Any) -> None:
        kind = TMessageType.ONEWAY if is_oneway else TMessageType.CALL
        struct_of_arguments = struct(f"{name}_args")
        if len(args) + len(kwargs) != len(struct_of_arguments.__slots__):
            raise TypeError(f"{name} takes {len(struct_of_arguments.__slots__)} arguments: {struct_of_arguments()}")
        arguments = struct_of_arguments(*args, **kwargs)
        self._oprot.writeMessageBegin(name, kind, self._seqid)
        arguments.write(self._oprot)
        self._oprot.writeMessageEnd()
        self._oprot.trans.flush()

    def receive(self: Any) -> Any:
        protocol = self._iprot
        _, kind, _ = protocol.readMessageBegin()
        answer = TApplicationException() if kind == TMessageType.EXCEPTION else struct(f"{name}_result")()
        answer.read(protocol)
        protocol.readMessageEnd()
        if kind == TMessageType.EXCEPTION:
            raise answer
        fields = [entry for entry in answer.thrift_spec if entry]
        for number, _, field, _, _ in fields:
            value = getattr(answer, field)
            if value is not None:
                if number == 0:
                    return value
                raise value
        if fields and fields[0][0] == 0:
            raise TApplicationException(TApplicationException.MISSING_RESULT, f"{name} failed: unknown result")
        return None

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        getattr(self, f"send_{name}")(*args, **kwargs)
        return None if is_oneway else getattr(self, f"recv_{name}")()

    return {name: call, f"send_{name}": send} | ({} if is_oneway else {f"recv_{name}": receive})
