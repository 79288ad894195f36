"""Writes expression trees as Hive's Kryo does, without back references: trees that kryo_vectors.json does not have."""

from dataclasses import dataclass, field

ARRAY_LIST = "java.util.ArrayList"
PLAN = "org.apache.hadoop.hive.ql.plan."
GENERIC = "org.apache.hadoop.hive.ql.udf.generic."
NULL, NEW = b"\0", b"\1"


def varint(value: int) -> bytes:
    """Encode an unsigned number, seven bits per byte, the lowest first."""
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*encoded, value])


def characters(text: str) -> bytes:
    """ASCII of two or more ends with the high bit; a single character begins with its length plus one."""
    if len(text) == 1:
        return b"\x82" + text.encode()
    return text[:-1].encode() + bytes([ord(text[-1]) | 0x80])


def text_field(text: str) -> bytes:
    """Encode a String behind its reference marker."""
    return NEW + characters(text)


@dataclass(frozen=True)
class Column:
    """ExprNodeColumnDesc."""

    name: str


@dataclass(frozen=True)
class Raw:
    """An object of a class by name, with its fields as they are on the wire."""

    kind: str
    fields: bytes = b""


@dataclass(frozen=True)
class Constant:
    """ExprNodeConstantDesc."""

    value: "bool | int | str | Raw | list[int | None] | None"


@dataclass(frozen=True)
class Function:
    """ExprNodeGenericFuncDesc; ``fields``: those of the function's own class; ``children``: bytes to write as they are."""

    udf: str
    children: "tuple[Column | Constant | Function, ...] | bytes"
    fields: bytes = b""
    type_info: "Raw | None" = None


Tree = Column | Constant | Function


@dataclass
class Writer:
    """A stream; classes are named once and numbered afterwards."""

    kryo_5: bool
    names: list[str] = field(default_factory=list)

    def expression(self, tree: Function) -> bytes:
        """Encode the whole stream: Kryo 4 leaves out the class of the root."""
        return self._object(tree) if self.kryo_5 else NEW + self._function(tree)

    def _class(self, name: str) -> bytes:
        if name in self.names:
            return b"\1" + varint(self.names.index(name))
        self.names.append(name)
        return b"\1" + varint(len(self.names) - 1) + characters(name)

    def _object(self, tree: Tree | Raw) -> bytes:
        match tree:
            case Column(name):
                return self._class(PLAN + "ExprNodeColumnDesc") + NEW + text_field(name) + b"\1\0" + NULL + NULL
            case Constant(value):
                return self._class(PLAN + "ExprNodeConstantDesc") + NEW + NULL + self._value(value)
            case Function():
                return self._class(PLAN + "ExprNodeGenericFuncDesc") + NEW + self._function(tree)
            case Raw(kind, fields):
                return self._class(kind) + NEW + fields

    def _function(self, tree: Function) -> bytes:
        if isinstance(tree.children, bytes):
            children = tree.children
        else:
            size = varint(len(tree.children) + 1 if self.kryo_5 else len(tree.children))
            children = self._class(ARRAY_LIST) + NEW + size + b"".join(map(self._object, tree.children))
        udf = self._class(GENERIC + tree.udf) + NEW + tree.fields if tree.udf else NULL
        return children + udf + b"\0" + (self._object(tree.type_info) if tree.type_info else NULL)

    def _value(self, value: object) -> bytes:
        """Numbers of classes that Kryo registers itself: int 0, String 1, boolean 3; plus two."""
        match value:
            case bool():
                return b"\5" + bytes([value])
            case int():
                return b"\2" + varint(value << 1)
            case str():
                return b"\3" + text_field(value)
            case Raw():
                return self._object(value)
            case list():  # Kryo 5, integers: same class, elements may be null
                items = b"".join(NULL if item is None else NEW + varint(item << 1) for item in value)
                return self._class(ARRAY_LIST) + NEW + bytes([0x80 | len(value) + 1]) + b"\2\1" + items
            case _:
                return NULL


def kryo_4(tree: Function) -> bytes:
    """As Hive 2.3 and 3.1 write it."""
    return Writer(kryo_5=False).expression(tree)


def kryo_5(tree: Function) -> bytes:
    """As Hive 4 writes it."""
    return Writer(kryo_5=True).expression(tree)
