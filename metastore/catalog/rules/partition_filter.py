"""The filter language of get_partitions_by_filter: text → syntax tree → predicate over a table's partition keys.

Rule: accept what Hive 2.3 or Hive 4 accepts, refuse the rest with Hive's sentences (clients match on them), and never
read a filter in a way that loses a partition. Strings keep their backslashes, as Hive 2.3 does and Spark relies
on (it never escapes), except that one before a quote is dropped.

    expr := or ;  or := and (OR and)* ;  and := prim (AND prim)* ;  prim := '(' or ')' | condition
    condition := key op const | const op key | key [NOT] BETWEEN const AND const | ['('] key [')'] [NOT] IN '(' const, ... ')'
               | '(' STRUCT '(' key, ... ')' ')' [NOT] IN '(' [CONST] STRUCT '(' const, ... ')', ... ')'
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import NamedTuple, NoReturn, TypeVar

from metastore.catalog.partition_names import DEFAULT_PARTITION
from metastore.catalog.rules.partition_predicate import (
    EVERYTHING,
    And,
    Comparison,
    Kind,
    Literal,
    Op,
    Or,
    Predicate,
    Unknown,
    parse_date,
    parse_timestamp,
)
from metastore.errors import InvalidRequestError


class PartitionKey(NamedTuple):
    """A partition key of a table: its lower-case name and its type as declared."""

    name: str
    type: str


@dataclass(frozen=True)
class Condition:
    """A comparison of a key with a constant as written, before the table's keys are known."""

    key: str
    op: Op
    constant: Literal


@dataclass(frozen=True)
class AllOf:
    """Conditions joined by AND."""

    parts: tuple["Syntax", ...]


@dataclass(frozen=True)
class AnyOf:
    """Conditions joined by OR."""

    parts: tuple["Syntax", ...]


Syntax = Condition | AllOf | AnyOf | Unknown
Item = TypeVar("Item")

NEGATED = {Op.EQ: Op.NE, Op.NE: Op.EQ, Op.LT: Op.GE, Op.LE: Op.GT, Op.GT: Op.LE, Op.GE: Op.LT}
MIRRORED = {Op.EQ: Op.EQ, Op.NE: Op.NE, Op.LT: Op.GT, Op.LE: Op.GE, Op.GT: Op.LT, Op.GE: Op.LE}
_OPS = {"=": Op.EQ, "==": Op.EQ, "<=>": Op.EQ, "<>": Op.NE, "!=": Op.NE, "<": Op.LT, "<=": Op.LE, ">": Op.GT, ">=": Op.GE}
_KINDS = {"string": Kind.TEXT, "char": Kind.TEXT, "varchar": Kind.TEXT, "tinyint": Kind.INTEGER, "smallint": Kind.INTEGER,
          "int": Kind.INTEGER, "bigint": Kind.INTEGER, "date": Kind.DATE, "timestamp": Kind.TIMESTAMP}
_MAX_INTEGER = 2**63


def parse_filter(text: str | None, keys: Sequence[PartitionKey], default: str = DEFAULT_PARTITION) -> Predicate:
    """The predicate for a filter string; none, or an empty one, keeps everything.

    Raises: InvalidRequestError for wrong syntax, an unknown key, a constant that is not of the key's type.
    """
    if not text:
        return EVERYTHING
    return bind(parse(text), keys, default)


def parse(text: str) -> Syntax:
    """The syntax tree of a filter, whatever its keys are.  Raises: InvalidRequestError."""
    return _Parser(text).parse()


def bind(syntax: Syntax, keys: Sequence[PartitionKey], default: str = DEFAULT_PARTITION) -> Predicate:
    """Resolve names and types: a predicate over the values of these keys.  Raises: InvalidRequestError."""
    match syntax:
        case AllOf(parts):
            return And(tuple(bind(part, keys, default) for part in parts))
        case AnyOf(parts):
            return Or(tuple(bind(part, keys, default) for part in parts))
        case Unknown():
            return syntax
        case Condition(name, op, constant):
            column = next((i for i, key in enumerate(keys) if key.name == name.lower()), None)
            if column is None:
                raise InvalidRequestError(f"Specified key <{name}> is not a partitioning key for the table")
            kind, typed = _typed(keys[column], op, constant, default)
            return Comparison(column, kind, op, typed)


def all_of(parts: Iterable[Syntax]) -> Syntax:
    """Join by AND; nested ones are taken apart, so that depth does not grow with length."""
    flat = [inner for part in parts for inner in (part.parts if isinstance(part, AllOf) else (part,))]
    return flat[0] if len(flat) == 1 else AllOf(tuple(flat))


def any_of(parts: Iterable[Syntax]) -> Syntax:
    """Join by OR, as ``all_of``."""
    flat = [inner for part in parts for inner in (part.parts if isinstance(part, AnyOf) else (part,))]
    return flat[0] if len(flat) == 1 else AnyOf(tuple(flat))


def negation(syntax: Syntax) -> Syntax:
    """NOT, pushed down to the comparisons, where the default partition satisfies neither a comparison nor its opposite."""
    match syntax:
        case AllOf(parts):
            return any_of(negation(part) for part in parts)
        case AnyOf(parts):
            return all_of(negation(part) for part in parts)
        case Condition(key, op, constant) if op in NEGATED:
            return Condition(key, NEGATED[op], constant)
        case Condition(key, op, _):
            return Unknown(f"not {key} {op}")
        case Unknown():
            return syntax


def _typed(key: PartitionKey, op: Op, constant: Literal, default: str) -> tuple[Kind, Literal]:
    """The constant as the key's type. The default partition's token can be asked for whatever the type."""
    found = re.match(r"\w*", key.type.lower())
    kind = _KINDS.get(found[0] if found else "")
    if constant == default:
        return Kind.TEXT, default
    typed: Literal | None = None
    if kind is Kind.TEXT:
        typed = constant if isinstance(constant, str) else None
    elif op is Op.LIKE:
        typed = None
    elif kind is Kind.INTEGER:
        typed = constant if isinstance(constant, int) else None
    elif kind is Kind.DATE:
        typed = _as_date(constant)
    elif kind is Kind.TIMESTAMP:
        typed = _as_timestamp(constant)
    if kind is None or typed is None:
        raise InvalidRequestError(
            "Filtering is supported only on partition keys of type string, or with a constant of the key's own type: "
            f"key {key.name} is of type {key.type}, the filter has {op} {constant!r}")
    return kind, typed


def _as_date(constant: Literal) -> date | None:
    if isinstance(constant, str):
        return parse_date(constant)
    return constant if isinstance(constant, date) and not isinstance(constant, datetime) else None


def _as_timestamp(constant: Literal) -> datetime | None:
    if isinstance(constant, date) and not isinstance(constant, datetime):
        constant = constant.isoformat()
    if isinstance(constant, str):
        return parse_timestamp(constant)
    return constant if isinstance(constant, datetime) else None


_TOKEN = re.compile(r"""\s*(?:
      (?P<date>[0-9]{4}-[0-9]{2}-[0-9]{2}(?![\w-]))
    | (?P<integer>-?[0-9]+(?!\w))
    | (?P<word>\w+)
    | `(?P<quoted>[^`]+)`
    | (?P<string>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
    | (?P<op><=>|<=|<>|<|>=|>|==|=|!=)
    | (?P<mark>[(),])
    )""", re.VERBOSE | re.DOTALL)


class _Token(NamedTuple):
    kind: str
    text: str
    at: int

    def is_word(self, *words: str) -> bool:
        return self.kind == "word" and self.text.lower() in words


class _Parser:
    """Reads one filter. Operators wait on a stack, so that nesting is not limited by Python's own."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = list(self._lex())
        self._next = 0

    def _lex(self) -> Iterable[_Token]:
        at, end = 0, len(self._text.rstrip())
        while at < end:
            found = _TOKEN.match(self._text, at)
            if not found or not found.lastgroup:
                self._refuse(at)
            yield _Token(found.lastgroup, found[found.lastgroup], at)
            at = found.end()
        yield _Token("end", "", end)

    def _refuse(self, at: int) -> NoReturn:
        raise InvalidRequestError(
            f"Error parsing partition filter; unexpected {self._text[at:at + 20].strip() or 'end'!r} at character {at} of: {self._text}")

    def _peek(self, ahead: int = 0) -> _Token:
        return self._tokens[min(self._next + ahead, len(self._tokens) - 1)]

    def _take(self) -> _Token:
        token = self._peek()
        self._next += 1
        return token

    def _accept(self, text: str) -> bool:
        token = self._peek()
        if token.kind in {"mark", "word"} and token.text.lower() == text:
            self._next += 1
            return True
        return False

    def _expect(self, text: str) -> None:
        if not self._accept(text):
            self._refuse(self._peek().at)

    def parse(self) -> Syntax:
        """The whole filter."""
        # One frame per open parenthesis: finished OR branches, and the AND terms of the branch being read.
        frames: list[tuple[list[Syntax], list[Syntax]]] = [([], [])]
        while True:
            while self._peek().text == "(" and self._peek().kind == "mark" and not self._is_parenthesised_key():
                self._next += 1
                frames.append(([], []))
            frames[-1][1].append(self._condition())
            while self._accept(")"):
                if len(frames) == 1:
                    self._refuse(self._tokens[self._next - 1].at)
                group = _close(*frames.pop())
                frames[-1][1].append(group)
            if self._accept("or"):
                branches, terms = frames.pop()
                frames.append(([*branches, all_of(terms)], []))
            elif not self._accept("and"):
                break
        if len(frames) > 1 or self._peek().kind != "end":
            self._refuse(self._peek().at)
        return _close(*frames[0])

    def _is_parenthesised_key(self) -> bool:
        """``(key) [NOT] IN`` or ``(STRUCT(``, not a group."""
        if self._peek(1).is_word("struct") and self._peek(2).text == "(":
            return True
        return self._peek(1).kind in {"word", "quoted"} and self._peek(2).text == ")"

    def _condition(self) -> Syntax:
        if self._accept("("):
            if self._peek().is_word("struct") and self._peek(1).text == "(":
                return self._struct_in()
            key = self._key()
            self._expect(")")
            return self._in(key)
        if self._is_constant():
            constant = self._constant()
            op = self._op()
            return Condition(self._key(), MIRRORED.get(op) or self._refuse(self._peek().at), constant)
        key = self._key()
        if self._peek().is_word("between") or (self._peek().is_word("not") and self._peek(1).is_word("between")):
            return self._between(key)
        if self._peek().is_word("in", "not"):
            return self._in(key)
        return Condition(key, self._op(), self._constant())

    def _between(self, key: str) -> Syntax:
        negated = self._accept("not")
        self._expect("between")
        low = self._constant()
        self._expect("and")
        inside = AllOf((Condition(key, Op.GE, low), Condition(key, Op.LE, self._constant())))
        return negation(inside) if negated else inside

    def _in(self, key: str) -> Syntax:
        negated = self._accept("not")
        self._expect("in")
        inside = any_of(Condition(key, Op.EQ, constant) for constant in self._list(self._constant))
        return negation(inside) if negated else inside

    def _struct_in(self) -> Syntax:
        self._expect("struct")
        keys = self._list(self._key)
        self._expect(")")
        negated = self._accept("not")
        self._expect("in")
        at = self._peek().at
        rows = self._list(self._struct)
        if any(len(row) != len(keys) for row in rows):
            self._refuse(at)
        inside = any_of(all_of(Condition(key, Op.EQ, constant) for key, constant in zip(keys, row, strict=True)) for row in rows)
        return negation(inside) if negated else inside

    def _struct(self) -> list[Literal]:
        self._accept("const")
        self._expect("struct")
        return self._list(self._constant)

    def _list(self, item: Callable[[], Item]) -> list[Item]:
        self._expect("(")
        items = [item()]
        while self._accept(","):
            items.append(item())
        self._expect(")")
        return items

    def _key(self) -> str:
        token = self._take()
        if token.kind not in {"word", "quoted"} or token.is_word("and", "or", "not", "between", "in", "like"):
            self._refuse(token.at)
        return token.text

    def _op(self) -> Op:
        token = self._take()
        if token.is_word("like"):
            return Op.LIKE
        if token.kind != "op":
            self._refuse(token.at)
        return _OPS[token.text]

    def _is_constant(self) -> bool:
        token = self._peek()
        return token.kind in {"string", "integer", "date"} or (
            token.is_word("date", "timestamp") and self._peek(1).kind == "string")

    def _constant(self) -> Literal:
        token = self._take()
        value: Literal | None = None
        if token.kind == "string":
            value = _unquoted(token.text)
        elif token.kind == "integer":
            value = _integer(token.text)
        elif token.kind == "date":
            value = parse_date(token.text)
        elif token.is_word("date") and self._peek().kind == "string":
            value = parse_date(_unquoted(self._take().text))
        elif token.is_word("timestamp") and self._peek().kind == "string":
            value = parse_timestamp(_unquoted(self._take().text))
        if value is None:
            self._refuse(token.at)
        return value


def _close(branches: list[Syntax], terms: list[Syntax]) -> Syntax:
    return any_of([*branches, all_of(terms)])


def _unquoted(text: str) -> str:
    return re.sub(r"\\([\"'])", r"\1", text[1:-1])


def _integer(text: str) -> int | None:
    """A 64-bit integer, as Hive reads constants; None beyond."""
    number = int(text[:40])
    return number if len(text) <= 40 and -_MAX_INTEGER <= number < _MAX_INTEGER else None
