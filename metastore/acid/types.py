"""A parser of Hive's column types: ``decimal(10,2)``, ``array<int>``, ``struct<a:int,b:map<string,date>>``.

Rule: kinds are lower case, and synonyms (``integer``, ``numeric``, ``double precision``) become the name the metastore
stores. Only the shape is parsed here; the caller checks the values of a kind.
"""

import re
from collections.abc import Callable
from typing import NamedTuple, TypeVar

from metastore.errors import InvalidInputError

_TOKEN = re.compile(r"\s*(`(?:[^`]|``)*`|[A-Za-z0-9_$.]+(?:[ \t]+[A-Za-z]+)*|[<>(),:])")
_SIMPLE = re.compile(r"[A-Za-z0-9_$.]+")
_SYNONYMS = {"integer": "int", "numeric": "decimal", "dec": "decimal", "double precision": "double", "long": "bigint"}
_CHILDREN = {"array": 1, "map": 2}
_DECIMAL_DEFAULT = (10, 0)
_T = TypeVar("_T")


class HiveType(NamedTuple):
    """A type: ``arguments`` of char, varchar and decimal; ``children`` of array, map, struct and uniontype."""

    kind: str
    arguments: tuple[int, ...] = ()
    children: tuple["HiveType", ...] = ()
    names: tuple[str, ...] = ()
    """A struct's field names, beside ``children``."""

    def __str__(self) -> str:
        """Return the type as Hive writes it."""
        inner = [str(child) for child in self.children]
        if self.kind == "struct":
            inner = [f"{_written(name)}:{text}" for name, text in zip(self.names, inner, strict=True)]
        if self.arguments:
            return f"{self.kind}({','.join(map(str, self.arguments))})"
        return f"{self.kind}<{','.join(inner)}>" if inner else self.kind

    @property
    def precision_and_scale(self) -> tuple[int, int]:
        """The precision and scale of a decimal; Hive's default is (10, 0)."""
        precision, scale = (*self.arguments, *_DECIMAL_DEFAULT[len(self.arguments) :])
        return precision, scale


def _written(name: str) -> str:
    return name if _SIMPLE.fullmatch(name) else f"`{name}`"


def parse_type(text: str) -> HiveType:
    """Parse a type.

    Raises: InvalidInputError.
    """
    reader = _Reader(text)
    hive_type = reader.type()
    if reader.peek():
        raise reader.unreadable()
    return hive_type


class _Reader:
    """A recursive-descent parser of the tokens of one type."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens: list[str] = []
        position = 0
        while position < len(text.rstrip()):
            match = _TOKEN.match(text, position)
            if match is None:
                raise self.unreadable()
            self._tokens.append(match[1])
            position = match.end()
        self._tokens.reverse()

    def peek(self) -> str:
        return self._tokens[-1] if self._tokens else ""

    def type(self) -> HiveType:
        word = self._next().lower()
        kind = _SYNONYMS.get(word, word)
        if not kind[:1].isalpha():
            raise self.unreadable()
        if kind == "struct":
            return self._struct()
        if kind in _CHILDREN or kind == "uniontype":
            children = self._list("<", ">", self.type)
            if len(children) != _CHILDREN.get(kind, len(children)):
                raise self.unreadable()
            return HiveType(kind, children=tuple(children))
        if self.peek() == "(":
            return HiveType(kind, arguments=tuple(self._list("(", ")", self._number)))
        return HiveType(kind)

    def unreadable(self) -> InvalidInputError:
        return InvalidInputError(f"Cannot read the column type {self._text!r}")

    def _struct(self) -> HiveType:
        fields = self._list("<", ">", self._field)
        return HiveType("struct", children=tuple(kind for _, kind in fields), names=tuple(name for name, _ in fields))

    def _field(self) -> tuple[str, HiveType]:
        name = self._next()
        self._expect(":")
        return name.strip("`"), self.type()

    def _number(self) -> int:
        digits = self._next()
        if not digits.isdecimal():
            raise self.unreadable()
        return int(digits)

    def _list(self, opening: str, closing: str, item: Callable[[], _T]) -> list[_T]:
        self._expect(opening)
        items = [item()]
        while self.peek() == ",":
            self._next()
            items.append(item())
        self._expect(closing)
        return items

    def _next(self) -> str:
        if not self._tokens:
            raise self.unreadable()
        return self._tokens.pop()

    def _expect(self, token: str) -> None:
        if self._next() != token:
            raise self.unreadable()
