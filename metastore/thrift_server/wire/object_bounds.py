"""Bounds of large messages, counted in objects.

Rule: the memory of one message is bounded before it is allocated. An empty struct is one byte on the wire and hundreds
in memory, so structs are counted while they are made. Equal descriptors share their content.
"""

from typing import Any

from thrift.Thrift import TType

from metastore.thrift_gen.hive_metastore.ttypes import StorageDescriptor
from metastore.thrift_server.wire.codec import MessageSource, MethodCodec, Spec
from metastore.thrift_server.wire.shared_descriptors import SharedDescriptors


class TooManyError(Exception):
    """Error: a message has more structs than it may have."""


class CountedCodec:
    """The codec of a method's arguments when their structs are counted; see `MethodCodec` for the fields."""

    def __init__(self, codec: MethodCodec, counted: "StructCounter") -> None:
        self.arguments_class = codec.arguments_class
        self.arguments = [codec.arguments_class, counted.spec(codec.arguments[1])]
        self._counted = counted
        self.older = None
        if codec.older is not None:
            suspected, (cls, spec), sensible = codec.older
            self.older = (suspected, [cls, counted.spec(spec)], sensible)

    def source(self, data: bytes, at: int) -> MessageSource:
        """Return the source: see `ArgumentsCodec`."""
        return self._counted.source(data, at)


class StructCounter:
    """A factory of field tables that count every struct they make. It is for one thread."""

    def __init__(self, most: int) -> None:
        self._most, self._left, self._descriptors = most, 0, SharedDescriptors()
        self._made: dict[int, list[Any]] = {}  # The key is the identity of a field table, which the module keeps.
        self._codecs: dict[str, CountedCodec] = {}

    def codec(self, codec: MethodCodec) -> CountedCodec:
        """Return the counting codec of this method."""
        if codec.name not in self._codecs:
            self._codecs[codec.name] = CountedCodec(codec, self)
        return self._codecs[codec.name]

    def source(self, data: bytes, at: int) -> MessageSource:
        """Begin a new message, whose arguments are complete."""
        source = MessageSource(data, at)
        self._left, self._descriptors = self._most, SharedDescriptors(source)
        return source

    def forget(self) -> None:
        """Forget the bytes of a decoded message."""
        self._descriptors = SharedDescriptors()

    def spec(self, spec: Spec) -> Spec:
        """Return a field table with counters in it."""
        return tuple((*entry[:3], self._arguments(entry[1], entry[3]), *entry[4:]) if entry else None for entry in spec)

    def _arguments(self, ttype: int, arguments: Any) -> Any:
        if ttype == TType.STRUCT:
            return self._struct(*arguments)
        if ttype in {TType.LIST, TType.SET}:
            return (arguments[0], self._arguments(*arguments[:2]), *arguments[2:])
        if ttype == TType.MAP:
            return (*arguments[:2], arguments[2], self._arguments(*arguments[2:4]), *arguments[4:])
        return arguments

    def _struct(self, cls: type, spec: Spec) -> list[Any]:
        made = self._made.get(id(spec))
        if made is None:
            made = self._made[id(spec)] = [self._maker(cls), None]  # Before its fields: they may need it.
            made[1] = self.spec(spec)
        return made

    def _maker(self, cls: type) -> type:
        """Return a class (the decoder wants a class) whose instances are counted, and are of the real class."""
        counted = self

        def make(_: type, *arguments: Any, **fields: Any) -> Any:
            counted._left -= 1
            if counted._left < 0:
                raise TooManyError(
                    f"the message has more than {counted._most} structs "
                    "(metastore.server.max.message.objects): send it in parts"
                )
            made = cls(*arguments, **fields)
            if cls is StorageDescriptor:
                counted._descriptors.begin(made)
            return made

        return type(cls.__name__, (cls,), {"__new__": make})
