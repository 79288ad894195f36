"""Codecs of each method's messages: field tables prepared once, used by the accelerated codec.

They are prepared when a method is first called: a process meets a tenth of the interface.

Rule: a message of any client version is understood as that client meant it. If one declaration cannot read two
versions, a second field table of the same struct reads the other (`OLDER_ARGUMENTS`); if a reply must suit two
versions, its table names a field twice (`RESULTS`). thrift_idl/README.md lists the cases.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from io import BytesIO
from operator import attrgetter
from typing import Any, NoReturn

from thrift.Thrift import TException, TType

from metastore.thrift_gen.enums import ENUM_FIELDS
from metastore.thrift_gen.hive_metastore import ttypes
from metastore.thrift_gen.required import REQUIRED
from metastore.thrift_server.wire.interface import METHODS

Spec = tuple[Any, ...]
Complaint = str
Walk = Callable[[Any], Complaint | None]
Rule = Callable[[Any], Walk | None]
"""A function from a struct class to a check of its instances, or to None if there is nothing to check."""


class ShortError(Exception):
    """Error: the bytes end before the value does."""


class MessageSource:
    """The bytes of one message in the form in which the accelerated decoder reads a protocol and its transport."""

    __slots__ = ("container_length_limit", "cstringio_buf", "string_length_limit")

    def __init__(self, data: bytes, at: int) -> None:
        self.cstringio_buf = buffer = BytesIO(data)
        buffer.seek(at)
        self.string_length_limit = self.container_length_limit = len(data)

    @property
    def trans(self) -> "MessageSource":
        """The transport, which the decoder asks the protocol for."""
        return self

    def cstringio_refill(self, _partial: bytes, _wanted: int) -> NoReturn:
        """Raise ShortError: the decoder wants more bytes than there are."""
        raise ShortError


class Nothing:
    """A stand-in for skipped arguments."""


SKIP = [Nothing, ()]
"""A field table that makes the decoder skip a struct."""


class ReplyField:
    """A carrier of a reply's only field."""

    __slots__ = ("message", "type", "value")

    def __init__(self, value: Any = None, message: str = "", kind: int = 0) -> None:
        self.value, self.message, self.type = value, message, kind


def _renamed(spec: Spec, fields: Mapping[int, tuple[Any, ...]]) -> Spec:
    """Return a field table with some fields replaced."""
    return tuple(fields.get(entry[0], entry) if entry else None for entry in spec)


def _nested(entry: tuple[Any, ...], spec: Spec) -> tuple[Any, ...]:
    """Return a struct field whose struct is read with another field table."""
    return (*entry[:3], [entry[3][0], spec], entry[4])


_TEXTS = (TType.STRING, "UTF8", False)

# Hive 2.3: 1 txnid, 2 dbname, 3 tablename, 4 partitionnames, 5 operationType (TXN-35).
_DYNAMIC_PARTITIONS_2_3: Spec = (
    None,
    (1, TType.I64, "txnid", None, None),
    (2, TType.STRING, "dbname", "UTF8", None),
    (3, TType.STRING, "tablename", "UTF8", None),
    (4, TType.LIST, "partitionnames", _TEXTS, None),
    (5, TType.I32, "operationType", None, ttypes.DataOperationType.UNSET),
)
# Hive 2.3: 1 filesAdded, 2 filesAddedChecksum.
_INSERT_EVENT_2_3: Spec = (
    None,
    (1, TType.LIST, "filesAdded", _TEXTS, None),
    (2, TType.LIST, "filesAddedChecksum", _TEXTS, None),
)


def _dynamic_partitions_2_3(spec: Spec) -> Spec:
    return _renamed(spec, {1: _nested(spec[1], _DYNAMIC_PARTITIONS_2_3)})


def _insert_event_2_3(spec: Spec) -> Spec:
    request = ttypes.FireEventRequest.thrift_spec
    data = ttypes.FireEventRequestData.thrift_spec
    older_data = _renamed(data, {1: _nested(data[1], _INSERT_EVENT_2_3)})
    return _renamed(spec, {1: _nested(spec[1], _renamed(request, {2: _nested(request[2], older_data)}))})


def _no_write_id(arguments: Any) -> bool:
    """Return True if add_dynamic_partitions is in the layout of 2.3: from 3.1 on every client sends writeid."""
    return arguments.rqst is not None and arguments.rqst.writeid is None


def _no_replace(arguments: Any) -> bool:
    """Return True if fire_listener_event may be in the layout of 2.3: it then has no boolean in field 1."""
    data = arguments.rqst.data if arguments.rqst else None
    return data is not None and data.insertData is not None and data.insertData.replace is None


def _has_files(arguments: Any) -> bool:
    return bool(arguments.rqst.data.insertData.filesAdded)


def _has_names(arguments: Any) -> bool:
    return arguments.rqst.dbname is not None


# A row is: method -> (may it be the older layout?, the older field table, does it make sense so?).
OLDER_ARGUMENTS: Mapping[str, tuple[Callable[[Any], bool], Callable[[Spec], Spec], Callable[[Any], bool]]] = {
    "add_dynamic_partitions": (_no_write_id, _dynamic_partitions_2_3, _has_names),
    "fire_listener_event": (_no_replace, _insert_event_2_3, _has_files),
}


def _open_txns_twice(spec: Spec) -> Spec:
    """Return the success field of get_open_txns: open_txns as list (3.1 and later) and again as set (2.3): TXN-22."""
    entries = ttypes.GetOpenTxnsResponse.thrift_spec
    as_set = (2, TType.SET, "open_txns", (TType.I64, None, False), None)
    return (_nested(spec[0], (*entries[:3], as_set, *entries[3:])), *spec[1:])


def _no_such_object_twice(spec: Spec) -> Spec:
    """Return the exceptions of create_ischema: NoSuchObjectException as field 2 (4.x) and again as field -1 (3.1)."""
    return (*spec, (-1, *spec[2][1:]))


RESULTS: Mapping[str, Callable[[Spec], Spec]] = {
    "get_open_txns": _open_txns_twice,
    "create_ischema": _no_such_object_twice,
}


class MethodCodec:
    """The field tables of a method."""

    __slots__ = (
        "arguments",
        "arguments_class",
        "enums",
        "exceptions",
        "name",
        "older",
        "oneway",
        "raises_no_such_txn",
        "read_arguments",
        "requests",
        "required",
        "success",
    )

    def __init__(self, name: str) -> None:
        """Name the method only: `_prepare` makes all other fields from the generated module."""
        self.name = name
        results = METHODS[name].METHODS[name][1]
        self.oneway = results is None
        self.raises_no_such_txn = "NoSuchTxnException" in (results or "").split()

    def __getattr__(self, attribute: str) -> Any:
        """Prepare the method when a slot is still empty."""
        if attribute not in self.__slots__:
            raise AttributeError(attribute)
        self._prepare()
        return getattr(self, attribute)

    def _prepare(self) -> None:
        """Fill every slot with its final value: several threads may be here, and all compute the same."""
        name, module = self.name, METHODS[self.name]
        self.arguments_class = getattr(module, f"{name}_args")
        self.arguments = [self.arguments_class, self.arguments_class.thrift_spec]
        entries = [entry for entry in self.arguments_class.thrift_spec if entry]
        self.read_arguments = _tuple_of([entry[2] for entry in entries])
        self.enums = _walk_struct(self.arguments_class, _unknown_enum)
        self.required = _walk_struct(self.arguments_class, _unset_field)
        self.requests = tuple(entry[2] for entry in entries if _is_request(entry))
        self.older = self._older() if name in OLDER_ARGUMENTS else None
        spec: Spec = () if self.oneway else getattr(module, f"{name}_result").thrift_spec
        if name in RESULTS:
            spec = RESULTS[name](spec)
        success = [entry for entry in spec if entry and entry[0] == 0]
        self.success = [ReplyField, tuple(_as_value(entry) for entry in success)] if success else None
        exceptions: dict[type[TException], list[Any]] = {}
        for entry in spec:
            if entry and entry[0] != 0:
                exceptions.setdefault(entry[3][0], [ReplyField, ()])[1] += (_as_value(entry),)
        self.exceptions = exceptions

    def _older(self) -> tuple[Any, ...]:
        suspected, older, sensible = OLDER_ARGUMENTS[self.name]
        return suspected, [self.arguments_class, older(self.arguments_class.thrift_spec)], sensible

    def source(self, data: bytes, at: int) -> MessageSource:
        """Return the source from which arguments are read."""
        return MessageSource(data, at)

    def unset(self, arguments: Any) -> Complaint | None:
        """Return a sentence about the first required field that is missing in the arguments."""
        for name in self.requests:
            if getattr(arguments, name) is None:
                return f"Required argument '{name}' of {self.name} is unset!"
        return self.required(arguments) if self.required else None

    def unknown(self, arguments: Any) -> Complaint | None:
        """Unset enum fields whose number no version knows, as Java's readers do.

        Returns the first such field that is required, as a sentence: its number stays.
        """
        return self.enums(arguments) if self.enums else None


def _is_request(entry: tuple[Any, ...]) -> bool:
    """Return True if an argument is a whole request, without which there is no work. Other structs may be absent."""
    struct = entry[3][0] if entry[1] == TType.STRUCT else None
    return struct is not None and (
        struct.__name__.endswith("Request") or struct in {ttypes.AddDynamicPartitions, ttypes.CreationMetadata}
    )


def _as_value(entry: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return a result field that is read from `ReplyField.value`."""
    return (*entry[:2], "value", *entry[3:])


def _tuple_of(names: list[str]) -> Callable[[Any], tuple[Any, ...]]:
    """Return a function that reads these attributes as a tuple."""
    if not names:
        return lambda _: ()
    read = attrgetter(*names)
    return read if len(names) > 1 else lambda arguments: (read(arguments),)


def _structs_in(ttype: int, arguments: Any) -> Iterator[type]:
    """Yield the struct classes that a field of this type holds directly."""
    if ttype == TType.STRUCT:
        yield arguments[0]
    elif ttype in (TType.LIST, TType.SET):
        yield from _structs_in(arguments[0], arguments[1])
    elif ttype == TType.MAP:
        yield from _structs_in(arguments[2], arguments[3])


@cache
def _reachable(cls: Any) -> frozenset[type]:
    """Return the struct itself and every struct inside it; structs may contain themselves."""
    reached, waiting = {cls}, [cls]
    while waiting:
        for entry in waiting.pop().thrift_spec:
            new = {struct for struct in _structs_in(entry[1], entry[3]) if struct not in reached} if entry else set()
            reached |= new
            waiting += new
    return frozenset(reached)


def _unset_field(cls: Any) -> Walk | None:
    required = REQUIRED.get(cls.__name__)

    def look(value: Any) -> Complaint | None:
        for name in required or ():
            if getattr(value, name) is None:
                return f"Required field '{name}' is unset! Struct:{value!r:.500}"
        return None

    return look if required else None


def _unknown_enum(cls: Any) -> Walk | None:
    enums = {name: getattr(ttypes, enum) for name, enum in ENUM_FIELDS.get(cls.__name__, ())}
    known = {name: enum._VALUES_TO_NAMES for name, enum in enums.items()}  # noqa: SLF001 - generated
    defaults = {entry[2]: entry[4] for entry in cls.thrift_spec if entry}
    required = REQUIRED.get(cls.__name__, ())

    def look(value: Any) -> Complaint | None:
        for name, names in known.items():
            number = getattr(value, name)
            if number is None or (number.__class__ is int and number in names):
                continue
            if isinstance(number, list):
                if not all(map(names.__contains__, number)):
                    setattr(value, name, [one for one in number if one in names])
            elif name not in required:
                setattr(value, name, defaults[name])
            else:
                return f"{name} of {cls.__name__} is {number}: use one of {_listed(names)}."
        return None

    return look if known else None


def _listed(names: Mapping[int, str]) -> str:
    return ", ".join(f"{number} ({name})" for number, name in names.items())


@cache
def _walk_struct(cls: Any, rule: Rule) -> Walk | None:
    """Return a function that applies a rule to a struct and the structs in it; None: there are none to check."""
    if not any(rule(struct) for struct in _reachable(cls)):
        return None
    own = rule(cls)
    nested: list[tuple[str, Walk]] | None = None

    def walk(value: Any) -> Complaint | None:
        nonlocal nested
        if nested is None:  # Prepared at the first use, since structs may contain themselves.
            entries = filter(None, cls.thrift_spec)
            nested = [(entry[2], walk) for entry in entries if (walk := _walk_of(entry[1], entry[3], rule))]
        if own and (complaint := own(value)):
            return complaint
        for name, inner in nested:
            field = getattr(value, name)
            if field is not None and (complaint := inner(field)):
                return complaint
        return None

    return walk


def _walk_of(ttype: int, arguments: Any, rule: Rule) -> Walk | None:
    if ttype == TType.STRUCT:
        return _walk_struct(arguments[0], rule)
    if ttype in (TType.LIST, TType.SET):
        return _walk_items(_walk_of(arguments[0], arguments[1], rule))
    if ttype == TType.MAP:
        inner = _walk_items(_walk_of(arguments[2], arguments[3], rule))
        return (lambda value: inner(value.values())) if inner else None
    return None


def _walk_items(inner: Walk | None) -> Walk | None:
    if inner is None:
        return None
    return lambda items: next((complaint for item in items if (complaint := inner(item))), None)


# This is TApplicationException on the wire.
APPLICATION_EXCEPTION = [
    ReplyField,
    (None, (1, TType.STRING, "message", "UTF8", None), (2, TType.I32, "type", None, None)),
]
CODECS: Mapping[str, MethodCodec] = {name: MethodCodec(name) for name in METHODS}
