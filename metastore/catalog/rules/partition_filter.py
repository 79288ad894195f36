r"""The filter language of get_partitions_by_filter: text → syntax tree → predicate over a table's partition keys.

Rule: accept what Hive 2.3 or Hive 4 accepts, refuse the rest with Hive's sentences (clients match on them), and never
read a filter in a way that loses a partition. Strings keep their backslashes, as Hive 2.3 does. A backslash before a
quote quotes it in Hive's grammar and is a character to Spark, which escapes nothing (``"a\"`` ends there, and
``like ".*".*"`` goes on): where both can be read and differ, a partition is decided only if both agree.

    expr := or ;  or := and (OR and)* ;  and := prim (AND prim)* ;  prim := '(' or ')' | condition
    condition := key op const | const op key | key [NOT] BETWEEN const AND const
               | ['('] key [')'] [NOT] IN '(' const, ... ')'
               | '(' STRUCT '(' key, ... ')' ')' [NOT] IN '(' [CONST] STRUCT '(' const, ... ')', ... ')'
"""

import re
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, NoReturn, TypeVar

from metastore.catalog.rules.partition_predicate import (
    EVERYTHING,
    Literal,
    Op,
    Predicate,
    Readings,
    parse_date,
    parse_timestamp,
)
from metastore.catalog.rules.partition_syntax import (
    MIRRORED,
    AllOf,
    Condition,
    PartitionKey,
    Syntax,
    all_of,
    any_of,
    bind,
    negation,
    require_shallow,
)
from metastore.errors import InvalidRequestError
from metastore.partition_names import DEFAULT_PARTITION

Item = TypeVar("Item")

_OPS = {
    "=": Op.EQ,
    "==": Op.EQ,
    "<=>": Op.EQ,
    "<>": Op.NE,
    "!=": Op.NE,
    "<": Op.LT,
    "<=": Op.LE,
    ">": Op.GT,
    ">=": Op.GE,
}
_MAX_INTEGER = 2**63
_LONGEST_INTEGER = 40
_MOST_TOKENS = 100_000
_MOST_OPEN = 10_000


def parse_filter(text: str | None, keys: Sequence[PartitionKey], default: str = DEFAULT_PARTITION) -> Predicate:
    """Return the predicate for a filter string; none, or an empty filter, keeps everything.

    Raises: InvalidRequestError for wrong syntax, an unknown key, a constant that is not of the key's type.
    """
    if not text:
        return EVERYTHING
    meanings: list[Predicate] = []
    refusals: list[InvalidRequestError] = []
    for grammar in (_HIVE, _SPARK):
        if grammar is _HIVE or refusals or "\\" in text:
            try:
                meanings.append(bind(_Parser(text, grammar).parse(), keys, default))
            except InvalidRequestError as refusal:
                refusals.append(refusal)
    if not meanings:
        raise refusals[0]
    return meanings[0] if all(meaning == meanings[0] for meaning in meanings) else Readings(tuple(meanings))


def parse(text: str) -> Syntax:
    """Return the syntax tree of a filter in Hive's grammar, for any keys.  Raises: InvalidRequestError."""
    return _Parser(text, _HIVE).parse()


class _Grammar(NamedTuple):
    """A client's spelling of strings: the pattern of one, and its value."""

    tokens: re.Pattern[str]
    unquoted: Callable[[str], str]


_TOKENS = r"""\s*(?:
      (?P<date>[0-9]{4}-[0-9]{2}-[0-9]{2}(?![\w-]))
    | (?P<integer>-?[0-9]+(?!\w))
    | (?P<word>\w+)
    | `(?P<quoted>[^`]+)`
    | (?P<string>{string})
    | (?P<op><=>|<=|<>|<|>=|>|==|=|!=)
    | (?P<mark>[(),])
    )"""


def _grammar(string: str, unquoted: Callable[[str], str]) -> _Grammar:
    return _Grammar(re.compile(_TOKENS.replace("{string}", string), re.VERBOSE | re.DOTALL), unquoted)


_HIVE = _grammar(r"""  "(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'  """, lambda text: re.sub(r"\\([\"'])", r"\1", text[1:-1]))
_SPARK = _grammar(
    r"""  (?<=like\ )"(?:[^"]|"(?!\s*(?:\)|and\b|or\b|\Z)))*+"  |  "[^"]*"  |  '[^']*'  """, lambda text: text[1:-1]
)


class _Token(NamedTuple):
    kind: str
    text: str
    at: int

    def is_word(self, *words: str) -> bool:
        return self.kind == "word" and self.text.lower() in words


class _Parser:
    """A parser of filters. Operators wait on a stack, so that nesting is not limited by Python's own."""

    def __init__(self, text: str, grammar: _Grammar) -> None:
        self._text = text
        self._grammar = grammar
        self._tokens = list(self._lex())
        self._next = 0

    def _lex(self) -> Iterable[_Token]:
        at, end, count = 0, len(self._text.rstrip()), 0
        while at < end:
            match = self._grammar.tokens.match(self._text, at, end)
            if not match or not match.lastgroup:
                self._refuse(at)
            yield _Token(match.lastgroup, match[match.lastgroup], at)
            at, count = match.end(), count + 1
            if count > _MOST_TOKENS:
                raise InvalidRequestError(
                    f"A filter has at most {_MOST_TOKENS} words, operators and constants; ask for ranges, or in parts."
                )
        yield _Token("end", "", end)

    def _refuse(self, at: int) -> NoReturn:
        rest = self._text[at : at + 20].strip() or "end"
        raise InvalidRequestError(
            f"Error parsing partition filter; unexpected {rest!r} at character {at} of: {self._text}"
        )

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
        """Parse the whole filter."""
        # One frame per open parenthesis: finished OR branches, and the AND terms of the branch being read.
        frames: list[tuple[list[Syntax], list[Syntax]]] = [([], [])]
        while True:
            while self._peek().text == "(" and self._peek().kind == "mark" and not self._is_parenthesised_key():
                self._next += 1
                if len(frames) > _MOST_OPEN:
                    raise InvalidRequestError(f"A filter has at most {_MOST_OPEN} parentheses open at a time.")
                frames.append(([], []))
            frames[-1][1].append(self._condition())
            while self._accept(")"):
                if len(frames) == 1:
                    self._refuse(self._tokens[self._next - 1].at)
                group = _close(*frames.pop())
                frames[-1][1].append(group)
            if self._accept("or"):
                branches, terms = frames[-1]
                branches.append(all_of(terms))
                terms.clear()
            elif not self._accept("and"):
                break
        if len(frames) > 1 or self._peek().kind != "end":
            self._refuse(self._peek().at)
        return require_shallow(_close(*frames[0]))

    def _is_parenthesised_key(self) -> bool:
        """Return True at ``(key) [NOT] IN`` or ``(STRUCT(``, which is not a group."""
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
        inside = any_of(
            all_of(Condition(key, Op.EQ, constant) for key, constant in zip(keys, row, strict=True)) for row in rows
        )
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
            token.is_word("date", "timestamp") and self._peek(1).kind == "string"
        )

    def _constant(self) -> Literal:
        token = self._take()
        value: Literal | None = None
        if token.kind == "string":
            value = self._grammar.unquoted(token.text)
        elif token.kind == "integer":
            value = _integer(token.text)
        elif token.kind == "date":
            value = parse_date(token.text)
        elif token.is_word("date") and self._peek().kind == "string":
            value = parse_date(self._grammar.unquoted(self._take().text))
        elif token.is_word("timestamp") and self._peek().kind == "string":
            value = parse_timestamp(self._grammar.unquoted(self._take().text))
        if value is None:
            self._refuse(token.at)
        return value


def _close(branches: list[Syntax], terms: list[Syntax]) -> Syntax:
    return any_of([*branches, all_of(terms)])


def _integer(text: str) -> int | None:
    """Parse a 64-bit integer, as Hive reads constants; None beyond."""
    number = int(text[:_LONGEST_INTEGER])
    return number if len(text) <= _LONGEST_INTEGER and -_MAX_INTEGER <= number < _MAX_INTEGER else None
