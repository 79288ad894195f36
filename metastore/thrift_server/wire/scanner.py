"""A scanner for the end of a message that arrives in pieces; each byte is read once.

An unframed message does not contain its length, so its structure has to be followed. Rule: a scanner goes on where it
stopped (a message of 100 MB in 1,000 pieces costs no more than in one), allocates no memory for a claimed length, and
refuses lengths and numbers of values beyond the limits, unknown types and nesting deeper than `DEEPEST` before anything
is decoded. In long lists of structs, of which large messages consist, the accelerated decoder steps over complete ones.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, Protocol

from thrift.protocol import fastbinary

from metastore.thrift_server.wire.codec import SKIP, MessageSource, Nothing

DEEPEST = 64
_WINDOW = 1 << 16
_STRUCT, _MAP, _SET, _LIST, _TEXT = 12, 13, 14, 15, 11
_FIXED = {2: 1, 3: 1, 4: 8, 6: 2, 8: 4, 10: 8, 16: 16}


class MalformedError(Exception):
    """Error: the bytes cannot be a message, or the message is too large or too deep."""


class Scanner(Protocol):
    """A search for the end of a struct."""

    at: int

    def advance(self, data: bytes | bytearray) -> bool:
        """Continue with all bytes received so far; True when the end is found, at ``self.at``.

        Raises: MalformedError.
        """

    def forget(self, size: int) -> None:
        """Forget the first bytes, which were passed on and are not shown again."""


class _ScannerBase:
    """The base of scanners: a walk over the structure, by a generator that yields whenever it needs more bytes."""

    _decode: Callable[[Any, MessageSource, Any], Any]

    def __init__(self, at: int, limit: int, most: int) -> None:
        self.at = at
        self._limit = limit
        self._left = most
        self._data: bytes | bytearray = b""
        self._walk = self._struct(0)

    def advance(self, data: bytes | bytearray) -> bool:
        """Continue the walk: see `Scanner`."""
        self._data = data
        if self.at > len(data):  # The data ends inside a text or a list of numbers.
            return False
        return next(self._walk, True) is True and self.at <= len(data)

    def forget(self, size: int) -> None:
        """Forget the first bytes, which were passed on and are not shown again."""
        self.at -= size
        self._limit -= size

    def _struct(self, depth: int) -> Iterator[bool]:
        raise NotImplementedError

    def _value(self, ttype: int, depth: int) -> Iterator[bool]:
        raise NotImplementedError

    def _structs(self, ttype: int, count: int, depth: int) -> Iterator[bool]:
        """Yield in the structs of a list: complete structs are skipped quickly, an incomplete one field by field."""
        while count:
            while len(self._data) <= self.at:
                yield False
            complete = self._complete_structs(count)
            count -= complete
            if count and not complete:
                yield from self._value(ttype, depth)
                count -= 1

    def _complete_structs(self, most: int) -> int:
        """Step over complete structs within the next `_WINDOW` bytes, and return their number."""
        window = MessageSource(bytes(memoryview(self._data)[self.at : self.at + _WINDOW]), 0)
        count = end = 0
        with suppress(Exception):  # The struct is not complete, or wrong: the slow way finds out.
            while count < most:
                self._decode(Nothing(), window, SKIP)
                count, end = count + 1, window.cstringio_buf.tell()
        self.at += end
        return count

    def _count(self, values: int) -> None:
        """Count the values of a list or map."""
        self._left -= values
        if self._left < 0:
            raise MalformedError("the message has too many values (metastore.server.max.message.objects)")

    def _skip(self, size: int) -> None:
        """Step over bytes that may not be there yet."""
        self.at += size
        if size < 0 or self.at > self._limit:
            raise MalformedError("a length in the message is negative or beyond the size limit")

    def _deeper(self, depth: int) -> int:
        if depth >= DEEPEST:
            raise MalformedError(f"the message is nested more than {DEEPEST} levels deep")
        return depth + 1


class BinaryScanner(_ScannerBase):
    """The scanner for TBinaryProtocol."""

    _decode = staticmethod(fastbinary.decode_binary)

    def _struct(self, depth: int) -> Iterator[bool]:
        while True:
            while len(self._data) <= self.at:
                yield False
            ttype = self._data[self.at]
            self.at += 1
            if ttype == 0:
                return
            self.at += 2  # This skips the field's id.
            yield from self._value(ttype, depth)

    def _value(self, ttype: int, depth: int) -> Iterator[bool]:
        if size := _FIXED.get(ttype):
            self._skip(size)
        elif ttype == _TEXT:
            while len(self._data) < self.at + 4:
                yield False
            self._skip(4 + int.from_bytes(self._data[self.at : self.at + 4], signed=True))
        elif ttype == _STRUCT:
            yield from self._struct(self._deeper(depth))
        elif ttype in {_LIST, _SET}:
            while len(self._data) < self.at + 5:
                yield False
            item, count = self._data[self.at], int.from_bytes(self._data[self.at + 1 : self.at + 5], signed=True)
            self._skip(5)
            yield from self._items((item,), count, depth)
        elif ttype == _MAP:
            while len(self._data) < self.at + 6:
                yield False
            types = self._data[self.at], self._data[self.at + 1]
            count = int.from_bytes(self._data[self.at + 2 : self.at + 6], signed=True)
            self._skip(6)
            yield from self._items(types, count, depth)
        else:
            raise MalformedError(f"unknown type {ttype}")

    def _items(self, types: tuple[int, ...], count: int, depth: int) -> Iterator[bool]:
        if count < 0 or self.at + count * len(types) > self._limit:  # Every value takes at least one byte.
            raise MalformedError("the size of a list or map is negative or beyond the size limit")
        sizes = [_FIXED.get(ttype) for ttype in types]
        if count and all(sizes):
            self._skip(count * sum(size for size in sizes if size))
            return
        deeper = self._deeper(depth)
        self._count(count)
        if types == (_STRUCT,):
            yield from self._structs(_STRUCT, count, deeper)
            return
        for _ in range(count):
            for ttype in types:
                if ttype == _TEXT:  # This is the frequent case, without a generator for each value.
                    while len(self._data) < self.at + 4:
                        yield False
                    self._skip(4 + int.from_bytes(self._data[self.at : self.at + 4], signed=True))
                else:
                    yield from self._value(ttype, deeper)


# These are the types of the compact protocol.
_TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _CLIST, _CSET, _CMAP, _CSTRUCT, _UUID = 1, 2, 3, 7, 8, 9, 10, 11, 12, 13
_VARINTS = (4, 5, 6)
_SIZES = {_TRUE: 1, _FALSE: 1, _BYTE: 1, _DOUBLE: 8, _UUID: 16}
_TYPE_BITS = 0x0F
_MORE = 0x80  # The bit is set in every byte of a varint but the last.
_LONGEST_VARINT = 10


class CompactScanner(_ScannerBase):
    """The scanner for TCompactProtocol."""

    _decode = staticmethod(fastbinary.decode_compact)

    def _struct(self, depth: int) -> Iterator[bool]:
        while True:
            while len(self._data) <= self.at:
                yield False
            head = self._data[self.at]
            self.at += 1
            if head == 0:
                return
            if head <= _TYPE_BITS:  # The id is not a small step from the last, but a number of its own.
                yield from self._number()
            ttype = head & _TYPE_BITS
            if ttype not in {_TRUE, _FALSE}:
                yield from self._value(ttype, depth)

    def _number(self) -> Iterator[bool]:
        """Leave the value of a varint in ``self.number``."""
        self.number = shift = 0
        while True:
            while len(self._data) <= self.at:
                yield False
            byte = self._data[self.at]
            self.at += 1
            self.number |= (byte & 0x7F) << shift
            if byte < _MORE:
                return
            shift += 7
            if shift >= 7 * _LONGEST_VARINT:
                raise MalformedError("a number is too long")

    def _value(self, ttype: int, depth: int) -> Iterator[bool]:
        if ttype in _VARINTS:
            yield from self._number()
        elif size := _SIZES.get(ttype):
            self._skip(size)
        elif ttype == _BINARY:
            yield from self._number()
            self._skip(self.number)
        elif ttype == _CSTRUCT:
            yield from self._struct(self._deeper(depth))
        elif ttype in {_CLIST, _CSET}:
            yield from self._list(self._deeper(depth))
        elif ttype == _CMAP:
            yield from self._map(self._deeper(depth))
        else:
            raise MalformedError(f"unknown type {ttype}")

    def _list(self, depth: int) -> Iterator[bool]:
        while len(self._data) <= self.at:
            yield False
        head = self._data[self.at]
        self.at += 1
        self.number = head >> 4
        if self.number == _TYPE_BITS:
            yield from self._number()
        yield from self._items((head & _TYPE_BITS,), self.number, depth)

    def _map(self, depth: int) -> Iterator[bool]:
        yield from self._number()
        if count := self.number:
            while len(self._data) <= self.at:
                yield False
            head = self._data[self.at]
            self.at += 1
            yield from self._items((head >> 4, head & _TYPE_BITS), count, depth)

    def _items(self, types: tuple[int, ...], count: int, depth: int) -> Iterator[bool]:
        if self.at + count * len(types) > self._limit:
            raise MalformedError("the size of a list or map is beyond the size limit")
        self._count(count)
        if types == (_CSTRUCT,):
            yield from self._structs(_CSTRUCT, count, depth)
            return
        for _ in range(count):
            for ttype in types:
                yield from self._value(ttype, depth)
