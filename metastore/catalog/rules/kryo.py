"""A reader of the Kryo bytes in which Hive sends a partition condition, as far as conditions on partition keys go.

The bytes carry class names and values but no field names: the fields of a class follow its name in alphabetical order,
so each class that we read has its layout here. Layouts are equal in 2.3, 3.1 and 4.x; Kryo 3/4 (2.3, 3.1) and Kryo 5
(4.x) differ in how they write lists and fixed-length numbers.

Rule: no number in the bytes is believed beyond the bytes. A list has at most as many elements as there are bytes left,
and since objects may be referred to again, from several places or from inside of themselves, the tree that they unfold
to is counted before any code walks it.
"""

import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from metastore.errors import InvalidRequestError


@dataclass
class Node:
    """A Java object: its class without the package, and its fields."""

    kind: str
    fields: dict[str, Any] = field(default_factory=dict)


class UnreadableError(InvalidRequestError):
    """Error: the bytes have a form that this reader does not know."""


_KRYO_5_START = b"\x01\x00org.apache.hadoop.hive.ql.plan.ExprNodeGenericFuncDes"
_KRYO_4_START = b"\x01\x01\x00java.util.ArrayLis"
_NULL, _NEW = 0, 1
_BY_NAME = 1
_DEEPEST = 100
_LONGEST_TEXT = 1_000_000
_ASCII_END = 0x80
_LONGEST_VARINT = 63
_MOST_NODES = 100_000
_TOO_DEEP = f"The partition expression is nested deeper than {_DEEPEST}"

_COMPARE = "compareOI compareType:enum opDisplayName:text opName:text result"
_LAYOUTS = {
    name: [part.partition(":")[::2] for part in text.split()]
    for name, text in {
        "ExprNodeGenericFuncDesc": "children genericUDF isSortedExpr:flag typeInfo",
        "ExprNodeColumnDesc": "column:text isPartitionColOrVirtualCol:flag isSkewedCol:flag tabAlias:text typeInfo",
        "ExprNodeConstantDesc": "typeInfo value",
        "GenericUDFOPEqual": _COMPARE,
        "GenericUDFOPEqualNS": _COMPARE,
        "GenericUDFOPNotEqual": _COMPARE,
        "GenericUDFOPNotEqualNS": _COMPARE,
        "GenericUDFOPLessThan": _COMPARE,
        "GenericUDFOPEqualOrLessThan": _COMPARE,
        "GenericUDFOPGreaterThan": _COMPARE,
        "GenericUDFOPEqualOrGreaterThan": _COMPARE,
        "GenericUDFOPAnd": "result",
        "GenericUDFOPOr": "result",
        "GenericUDFOPNot": "result",
        "GenericUDFOPNull": "result",
        "GenericUDFOPNotNull": "result",
        "GenericUDFStruct": "",
        "GenericUDFToDate": "",
        "GenericUDFIn": "bw isInSetConstant:flag",
        "GenericUDFBetween": "argumentOIs:absent egt elt result",
        "GenericUDFBridge": "isOperator:flag udfClassName:text udfName:text",
        "GenericUDFTimestamp": "intToTimestampInSeconds:flag",
        "GenericUDFToVarchar": "typeInfo",
        "GenericUDFToChar": "typeInfo",
        "BooleanWritable": "value:flag",
        "PrimitiveTypeInfo": "typeName:text",
        "VarcharTypeInfo": "length:int typeName:text",
        "CharTypeInfo": "length:int typeName:text",
        "DecimalTypeInfo": "precision:int scale:int typeName:text",
        "StructTypeInfo": "allStructFieldNames:texts allStructFieldTypeInfos",
        "HiveVarchar": "value:text",
        "HiveChar": "value:text",
        "HiveDecimal": "fast0:int fast1:int fast2:int fastIntegerDigitCount:int fastScale:int "
        "fastSerializationScale:int fastSignum:int",
        "Date": "localDate:day",
        "Timestamp": "localDateTime:moment",
    }.items()
}


def is_kryo(data: bytes) -> bool:
    """Return True if the bytes begin as a serialized expression does."""
    return data.startswith((_KRYO_4_START, _KRYO_5_START))


def read(data: bytes) -> Node:
    """Return the expression in the bytes. Raises: UnreadableError for a class that we do not know, or damaged bytes."""
    reader = _Reader(data, kryo_5=data.startswith(_KRYO_5_START))
    try:
        node = reader.object() if reader.kryo_5 else reader.new_object("ExprNodeGenericFuncDesc", reader.varint())
    except (IndexError, UnicodeDecodeError, struct.error, ValueError, OverflowError) as error:
        raise UnreadableError(f"The partition expression is damaged at byte {reader.at}") from error
    except RecursionError:  # The depth that is left depends on the caller's stack.
        raise UnreadableError(_TOO_DEEP) from None
    if not isinstance(node, Node) or reader.at != len(data):
        raise UnreadableError("The partition expression is not one function")
    _unfolded(node, {})
    return node


def _unfolded(value: Any, sizes: dict[int, int]) -> int:
    """Count the nodes of the tree below a value; a shared node counts as often as it is referred to.

    Raises: UnreadableError.
    """
    inner = value.fields.values() if isinstance(value, Node) else value if isinstance(value, list) else ()
    if not inner:
        return 1
    known = sizes.get(id(value))
    if known is None:
        sizes[id(value)] = 0  # A node inside itself counts as 0.
        known = sizes[id(value)] = 1 + sum(_unfolded(part, sizes) for part in inner)
    if not 0 < known <= _MOST_NODES:
        raise UnreadableError(f"The partition expression contains itself, or has more than {_MOST_NODES} parts")
    return known


def _list_of(value: Any) -> list[Any]:
    if value is not None and not isinstance(value, list):
        raise UnreadableError("The partition expression has something else in place of a list")
    return value or []


@dataclass
class _Reader:
    data: bytes
    kryo_5: bool
    at: int = 0
    depth: int = 0
    seen: list[Any] = field(default_factory=list)
    names: list[str] = field(default_factory=list)

    def object(self) -> Any:
        """Read an object behind its class."""
        return self._instance(self._class())

    def new_object(self, kind: str, marker: int) -> Any:
        """Read an object whose class is known, behind its reference marker."""
        if marker == _NULL:
            return None
        if marker != _NEW:
            return self.seen[marker - 2]
        slot = len(self.seen)
        self.seen.append(None)
        if kind == "ArrayList":
            items: list[Any] = []
            self.seen[slot] = items
            with self._deeper():
                items.extend(self._list())
            return items
        if kind == "String":
            self.seen[slot] = self._text()
            return self.seen[slot]
        if kind in _SQL_TIMES:
            self.seen[slot] = _SQL_TIMES[kind](self)
            return self.seen[slot]
        if kind not in _LAYOUTS:
            raise UnreadableError(f"The partition expression has a {kind}, which is not read here")
        node = Node(kind)
        self.seen[slot] = node
        self._fill(node)
        return node

    def varint(self) -> int:
        """Read an unsigned number of up to nine bytes."""
        value = shift = 0
        while True:
            byte = self._byte()
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < _ASCII_END or shift > _LONGEST_VARINT:
                return value

    def fixed(self, layout: str) -> Any:
        """Read a number of fixed length."""
        size = struct.calcsize(layout)
        self.at += size
        [value] = struct.unpack(("<" if self.kryo_5 else ">") + layout, self.data[self.at - size : self.at])
        return value

    def _fill(self, node: Node) -> None:
        with self._deeper():
            for name, kind in _LAYOUTS[node.kind]:
                node.fields[name] = _FIELDS[kind](self)
        if "children" in node.fields:
            node.fields["children"] = _list_of(node.fields["children"])

    @contextmanager
    def _deeper(self) -> Iterator[None]:
        """Enter a level of nodes, or of lists, which alternate with levels of nodes."""
        self.depth += 1
        if self.depth > 2 * _DEEPEST:
            raise UnreadableError(_TOO_DEEP)
        yield
        self.depth -= 1

    def _count(self, size: int) -> int:
        """Read the number of elements that follow, each of at least one byte. Raises: UnreadableError."""
        if size > len(self.data) - self.at:
            raise UnreadableError(f"The partition expression has a list or text of {size} at byte {self.at}, its end")
        return size

    def _class(self) -> str | None:
        marker = self.varint()
        if marker == _NULL:
            return None
        if marker != _BY_NAME:
            kinds = _NUMBERED_5 if self.kryo_5 else _NUMBERED_4
            if marker - 2 not in kinds:
                raise UnreadableError(
                    f"The partition expression has a class number {marker - 2}, which is not read here"
                )
            return kinds[marker - 2]
        number = self.varint()
        if number == len(self.names):
            self.names.append(self._text() or "")
        return self.names[number].rpartition(".")[2]

    def _instance(self, kind: str | None) -> Any:
        if kind is None:
            return None
        if kind in _BOXED:
            return _BOXED[kind](self)
        return self.new_object(kind, self.varint())

    def _list(self) -> Iterator[Any]:
        if not self.kryo_5:
            for _ in range(self._count(self.varint())):
                yield self.object()
            return
        same, size = self._flagged()
        size = self._count(size - 1)
        if not same:
            for _ in range(size):
                yield self.object()
            return
        kind = self._class()
        nullable = kind is not None and self._byte()
        for _ in range(size):
            if kind in _BOXED and nullable and not self._byte():
                yield None
            else:
                yield self._instance(kind)

    def texts(self) -> list[str | None]:
        """Read a list of strings; Kryo 5 knows the element type from the field and leaves it out."""
        if not self.kryo_5:
            return _list_of(self.object())
        if self._class() is None or self.varint() != _NEW:
            raise UnreadableError("The partition expression shares a list of names, which is not read here")
        self.seen.append(None)
        return [self.text() for _ in range(self._count(self.varint() - 1))]

    def text(self) -> str | None:
        """Read a string field behind its reference marker."""
        number = self.new_object("String", self.varint())
        if number is not None and not isinstance(number, str):
            raise UnreadableError("The partition expression has something else in place of a text")
        return number

    def _text(self) -> str | None:
        """Read a string.

        ASCII ends with the high bit set; any other string begins with its length in characters plus one.
        """
        start = self.at
        if self.data[start] < _ASCII_END:
            while self._byte() < _ASCII_END:
                if self.at - start > _LONGEST_TEXT:
                    raise UnreadableError("The partition expression has an endless text")
            return self.data[start : self.at - 1].decode("ascii") + chr(self.data[self.at - 1] & 0x7F)
        _, length = self._flagged()
        return None if length == 0 else "".join(self._characters(self._count(length - 1)))

    def _characters(self, count: int) -> Iterator[str]:
        """Yield UTF-16 units, each stored in up to three bytes; pairs of surrogates are joined."""
        units = []
        for _ in range(count):
            size = _UTF8_SIZES.get(self.data[self.at] >> 4, 1)
            self.at += size
            units.append(self.data[self.at - size : self.at].decode("utf-8", "surrogatepass"))
        yield "".join(units).encode("utf-16", "surrogatepass").decode("utf-16")

    def _flagged(self) -> tuple[bool, int]:
        """Read a flag bit, then a number whose first byte has six bits."""
        byte = self._byte()
        value = byte & 0x3F
        return bool(byte & 0x80), value | self.varint() << 6 if byte & 0x40 else value

    def _byte(self) -> int:
        self.at += 1
        return self.data[self.at - 1]

    def enum(self) -> int:
        """Read an ordinal, stored plus one, or 0 for null."""
        return self.varint()

    def signed(self) -> int:
        """Read a zig-zag number."""
        value = self.varint()
        return (value >> 1) ^ -(value & 1)

    def flag(self) -> bool:
        """Read a boolean field."""
        return bool(self._byte())

    def absent(self) -> None:
        """Read a field that is never set when an expression is sent."""
        if self.varint() != _NULL:
            raise UnreadableError("The partition expression was already evaluated")

    def day(self) -> date | None:
        """Read a LocalDate."""
        return self._day() if self._is_new() else None

    def moment(self) -> datetime | None:
        """Read a LocalDateTime; None if the value is finer than a microsecond."""
        if not self._is_new():
            return None
        midnight = datetime.combine(self._day(), time())
        parts = [0, 0, 0]
        for place in range(3):
            part = self.fixed("b")
            parts[place] = ~part if part < 0 else part
            if part < 0:  # The remaining parts are zero.
                return midnight + timedelta(hours=parts[0], minutes=parts[1], seconds=parts[2])
        micros, finer = divmod(self.varint(), 1000)
        if finer:
            return None
        return midnight + timedelta(hours=parts[0], minutes=parts[1], seconds=parts[2], microseconds=micros)

    def _is_new(self) -> bool:
        if self.varint() != _NEW:
            return False
        self.seen.append(None)
        return True

    def _day(self) -> date:
        return date(self.varint(), self._byte(), self._byte())


_UTF8_SIZES = {12: 2, 13: 2, 14: 3}
_BOXED: dict[str, Callable[[_Reader], Any]] = {
    "int": _Reader.signed,
    "long": _Reader.signed,
    "boolean": _Reader.flag,
    "float": lambda reader: reader.fixed("f"),
    "double": lambda reader: reader.fixed("d"),
    "short": lambda reader: reader.fixed("h"),
    "byte": lambda reader: reader.fixed("b"),
}
_FIELDS: dict[str, Callable[[_Reader], Any]] = {
    "": _Reader.object,
    "text": _Reader.text,
    "texts": _Reader.texts,
    "flag": _Reader.flag,
    "int": _Reader.signed,
    "enum": _Reader.enum,
    "absent": _Reader.absent,
    "day": _Reader.day,
    "moment": _Reader.moment,
}


def _sql_date(reader: _Reader) -> date | None:
    """Read a date that is midnight in the client's unknown zone; None if zones disagree about the day.

    10:00 to 12:00 in UTC is midnight of one day in Honolulu, of another in Auckland. Before 1900 clocks had local time,
    and before 1582 another calendar.
    """
    midnight = datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=reader.fixed("q"))
    if midnight.year < _FIRST_YEAR_OF_ZONES or _FIRST_DOUBTFUL <= midnight.time() <= _LAST_DOUBTFUL:
        return None
    return (midnight + timedelta(hours=12)).date()


_FIRST_YEAR_OF_ZONES = 1900
_FIRST_DOUBTFUL, _LAST_DOUBTFUL = time(10), time(12)


def _sql_timestamp(reader: _Reader) -> None:
    """Skip a timestamp in the client's zone: without the zone it decides nothing."""
    reader.fixed("q")
    reader.fixed("i")


_SQL_TIMES: dict[str, Callable[[_Reader], Any]] = {"sql.Date": _sql_date, "sql.Timestamp": _sql_timestamp}
_NUMBERED = dict(enumerate(("int", "String", "float", "boolean", "byte", "char", "short", "long", "double")))
_NUMBERED_4 = _NUMBERED | {10: "sql.Date", 11: "sql.Timestamp"}
_NUMBERED_5 = _NUMBERED | {9: "sql.Date", 10: "sql.Timestamp"}
