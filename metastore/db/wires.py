"""Rows as the structs that clients get: a shape names the fields, PostgreSQL writes them in Thrift's binary protocol.

A field is its type, its id and its value; the struct ends with a zero. A list is encoded by the
statement that selects its rows (ADR 59).
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple

from metastore.db import pieces
from metastore.db.engine import Database, Row
from metastore.db.pieces import TURN, Asked, Pieces, Run, Sizes

AT_ONCE, FETCHED = 25_000, 10_000
"""The longest sorted list that is one statement; and the number of rows of a longer one that are fetched together."""
_SIZE, _LOWER_BOUND = slice(12, 16), 4
"""The position of an array's number of elements, and the bytes between it and these; an empty array has neither."""
_LAST_OF_ONE, _LAST_OF_MORE = "max({})::text", "(array_agg({}::text))[count(*)]"


class WireType(Enum):
    """The type of a field, as the protocol's number."""

    BOOL = "02"
    I32 = "08"
    I64 = "0a"
    TEXT = "0b"
    TEXTS = "0d"
    """A map from texts to texts; its value is JSON."""


class ThriftField(NamedTuple):
    """A field of a struct."""

    id: int
    kind: WireType
    value: str
    """SQL."""
    optional: bool = False
    """True if the field is left out when the value is null; otherwise the value must not be null."""


def text(value: str) -> str:
    """Return SQL for a text: its length and its bytes. Sessions speak UTF-8; ``convert_to`` costs ten times as much."""
    return f"int4send(octet_length({value})) || textsend({value})"


def struct(shape: Sequence[ThriftField]) -> str:
    """Return SQL for the bytes of a row."""
    return " || ".join([*map(_field, shape), r"'\x00'::bytea"])


class Wires(NamedTuple):
    """Some rows of a list, one after the other."""

    size: int
    encoded: bytes
    last: Sequence[str]
    """The values of the key in the last row, as PostgreSQL writes and reads them."""


@dataclass(frozen=True)
class _Listed(ABC):
    """A list too long for one statement."""

    rows: str
    """The text behind FROM, including the conditions."""
    parameters: Sequence[Any]

    @abstractmethod
    def piece(self, asked: Asked, after: Sequence[str] | None, most: int) -> Wires:
        """Read a piece: see `pieces.Listing`."""

    def count(self, run: Run, limit: int) -> int:
        """Count the rows: see `pieces.Listing`."""
        [(count,)] = run(
            f"SELECT count(*) FROM (SELECT FROM {self.rows} LIMIT %s) AS listed",
            (*self.parameters, None if limit < 0 else limit),
        )
        return int(count)

    def read(self, db: Database, limit: int, sizes: Sizes) -> Pieces[bytes]:
        """Return the first ``limit`` rows, all if that is negative."""
        return pieces.read(db, self, limit, sizes).of(lambda piece: piece.encoded)


@dataclass(frozen=True)
class TextList(_Listed):
    """The texts of a column that is unique among the rows, in its order.

    PostgreSQL sends an array of texts as Thrift does, each with its length before it; that takes less than half the
    time of joining the texts.
    """

    column: str

    def piece(self, asked: Asked, after: Sequence[str] | None, most: int) -> Wires:
        """Read a piece: see `pieces.Listing`.

        MATERIALIZED keeps the array from being made each time that it is named.
        """
        behind = "" if after is None else f" AND {self.column} > %s"
        sent, last = asked.binary(
            f"WITH listed AS MATERIALIZED (SELECT ARRAY(SELECT {self.column} FROM {self.rows}{behind} "
            f"ORDER BY {self.column} LIMIT %s) AS texts) "
            "SELECT array_send(texts), texts[cardinality(texts)] FROM listed",
            (*self.parameters, *(after or ()), most),
        )
        return Wires(int.from_bytes(sent[_SIZE]), sent[_SIZE.stop + _LOWER_BOUND :], [last and last.decode()])


@dataclass(frozen=True)
class WireList(_Listed):
    """Rows of some columns or expressions."""

    wire: str
    """SQL for the bytes of a row."""
    key: Sequence[str]
    """Columns that are unique together; the rows are in their order."""

    def piece(self, asked: Asked, after: Sequence[str] | None, most: int) -> Wires:
        """Read a piece: see `pieces.Listing`."""
        key, names = ", ".join(self.key), [f"k{place}" for place, _ in enumerate(self.key)]
        named = ", ".join(f"{column} AS {name}" for column, name in zip(self.key, names, strict=True))
        behind = "" if after is None else f" AND ({key}) > ({', '.join('%s' for _ in names)})"
        last = ", ".join((_LAST_OF_ONE if len(names) == 1 else _LAST_OF_MORE).format(name) for name in names)
        size, encoded, *behind_which = asked.binary(
            f"SELECT int4send(count(*)::int), coalesce(string_agg(wire, ''::bytea), ''::bytea), {last} FROM "
            f"(SELECT {named}, {self.wire} AS wire FROM {self.rows}{behind} ORDER BY {key} LIMIT %s) AS listed",
            (*self.parameters, *(after or ()), most),
        )
        return Wires(int.from_bytes(size), encoded, [value and value.decode() for value in behind_which])


@dataclass(frozen=True)
class SortedList:
    """Rows in an order that no index has. They are sorted once they are encoded: they are narrower then."""

    wire: str
    """SQL for the bytes of a row."""
    rows: str
    """The text behind FROM, including the conditions."""
    order: str
    parameters: Sequence[Any] | Mapping[str, Any]
    beside: str = "''::bytea"
    """SQL for bytes that are wanted as of the same instant."""

    def read(self, db: Database) -> tuple[Pieces[bytes], bytes]:
        """Return the whole list, and the additional value of the query.

        A short list is one statement, which costs least, and which reads only as many rows as show that a list is long.
        A long list is counted, and fetched from a cursor: PostgreSQL sorts it once, and keeps the rows that are not
        fetched yet.
        """
        size, encoded, beside = db.binary(
            f"SELECT int4send(count(*)::int), coalesce(string_agg(wire, ''::bytea), ''::bytea), {self.beside} "
            f"FROM ({self._encoded(f'LIMIT {AT_ONCE + 1}')}) AS listed",
            self.parameters,
        )
        count = int.from_bytes(size)
        if count <= AT_ONCE:
            return Pieces(count, iter((encoded,)), ExitStack()), beside
        with ExitStack() as opened:
            pg = opened.enter_context(db.begin(snapshot=True))
            size, beside = pg.binary(f"SELECT int4send(count(*)::int), {self.beside} FROM {self.rows}", self.parameters)
            count = int.from_bytes(size)
            rows = pg.fetched(self._encoded(""), self.parameters, FETCHED)
            return Pieces(count, _joined(rows, count), opened.pop_all()), beside

    def _encoded(self, limit: str) -> str:
        """Return the query; ``limit``: applies before sorting, or the rows would be sorted before they are encoded."""
        return f"SELECT {self.wire} AS wire FROM (SELECT * FROM {self.rows} {limit}) AS every ORDER BY {self.order}"


def _joined(fetched: Iterator[list[Row]], count: int) -> Iterator[bytes]:
    while count > 0:
        with TURN:
            rows = next(fetched)
        count -= len(rows)
        yield b"".join(wire for (wire,) in rows)


def millis(instant: str) -> str:
    """Return SQL for an instant as clients get it: whole milliseconds, rounded down.

    ``date_part`` computes in floating point, which is much faster than ``extract`` in decimals. Until the year 2106 its
    error is below half a microsecond, and instants are whole microseconds: half of one is added before cutting off.
    """
    return f"floor(date_part('epoch', {instant}) * 1000 + 0.0005)::bigint"


def number(numbers: Iterable[tuple[str, int]], column: str) -> str:
    """Return SQL for the protocol's number of a stored text. All of the texts are the code's own."""
    cases = " ".join(f"WHEN '{stored}' THEN {value}" for stored, value in numbers)
    return f"CASE {column} {cases} END"


def _texts(value: str) -> str:
    pairs = f"{text('key')} || {text('value')}"
    return (
        rf"'\x0b0b'::bytea || (SELECT int4send(count(*)::int) || coalesce(string_agg({pairs}, ''::bytea), ''::bytea) "
        f"FROM jsonb_each_text({value}))"
    )


_WRITERS = {
    WireType.BOOL: r"CASE WHEN {} THEN '\x01'::bytea ELSE '\x00'::bytea END".format,
    WireType.I32: "int4send({})".format,
    WireType.I64: "int8send({})".format,
    WireType.TEXT: text,
    WireType.TEXTS: _texts,
}


def _field(field: ThriftField) -> str:
    written = rf"'\x{field.kind.value}{field.id:04x}'::bytea || {_WRITERS[field.kind](field.value)}"
    return f"coalesce({written}, ''::bytea)" if field.optional else written
