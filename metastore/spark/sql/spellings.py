"""Hive's spellings of statements that Spark has in other words → Spark's. Pure; texts are read as tokens.

- ``CREATE TRANSACTIONAL TABLE``: a property.
- Constraints of a CREATE TABLE, with ENABLE, NOVALIDATE, RELY: a property too, which the catalog hands to the planner.
- ``SORTED BY (column DESC)``: a property as well.
- ``CASCADE`` and ``RESTRICT`` of ALTER TABLE: left out; the session hands the columns to the partitions.
- ``INSERT VALUES (...)`` of a MERGE: with the target's columns.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import sqlglot
from sqlglot.tokenizer_core import Token, TokenType

from metastore.client.declared_constraints import Declaration
from metastore.spark.sql.alterations import column_definitions, definitions
from metastore.spark.sql.constraint_syntax import declarations, without_words
from metastore.spark.sql.dialect import DIALECT
from metastore.spark.sql.statements import TableRef, dotted

_CREATE = re.compile(
    r"create\s+(?P<transactional>transactional\s+)?table\s+(?:if\s+not\s+exists\s+)?(?P<table>[\w.`]+)", re.IGNORECASE
)
_IS_TRANSACTIONAL = re.compile(r"(['\"])transactional\1\s*=\s*(['\"])true\2", re.IGNORECASE)
_PROPERTIES = re.compile(r"\btblproperties\s*\(", re.IGNORECASE)
_SORTED = re.compile(r"\bsorted\s+by\s*\((?P<columns>[^()]*)\)", re.IGNORECASE)
_DESCENDING = re.compile(r"`?(\w+)`?\s+desc\b", re.IGNORECASE)
_HOW = re.compile(
    r"(?P<alter>alter\s+table\s+(?P<table>[\w.`]+)\s+(?:add\s+columns?|change|replace\s+columns)\b.*?)\s+(?P<how>cascade|restrict)\s*;?\s*$",
    re.IGNORECASE | re.DOTALL,
)
_MERGE = re.compile(
    r"(?:with\b.*\b)?merge\s+(?:with\s+schema\s+evolution\s+)?into\s+(?P<table>[\w.`]+)", re.IGNORECASE | re.DOTALL
)
_OF_HIVE = {
    "CONSTRAINT", "CHECK", "UNIQUE", "PRIMARY", "FOREIGN", "REFERENCES", "ENABLE", "ENFORCED", "DISABLE", "VALIDATE",
    "NOVALIDATE", "RELY", "NORELY",
}  # fmt: skip


_DELETE = re.compile(
    r"delete\s+from\s+(?P<table>[\w.`]+)(?:\s+(?:as\s+)?(?!where\b)`?\w+`?)?(?P<end>\s*;?\s*)$", re.IGNORECASE
)
_OF_ANY_ROW = " WHERE coalesce(ROW__ID.rowid, 0) >= 0"


def emptied(text: str) -> tuple[TableRef, str] | None:
    """The table of a DELETE without WHERE, and the statement with a condition that each row meets; None for others.

    Without one Spark would empty the table as TRUNCATE does, and wait for those that read it.
    """
    match = _DELETE.match(text)
    return None if match is None else (dotted(match["table"]), text[: match.start("end")] + _OF_ANY_ROW)


def cascaded(text: str) -> tuple[TableRef, str] | None:
    """The table of an ALTER TABLE ... CASCADE, and the statement without that word; None for others."""
    match = _HOW.match(text)
    is_so = match is not None and match["how"].lower() == "cascade"
    return (dotted(match["table"]), match["alter"]) if match is not None and is_so else None


class Created(NamedTuple):
    """A CREATE TABLE of a transactional table with constraints: ``types`` by column, of partition keys too."""

    table: TableRef
    types: Mapping[str, str]
    constraints: Sequence[Declaration]


def in_sparks_words(text: str, columns_of: Callable[[TableRef], Sequence[str]]) -> tuple[str, Created | None]:
    """The statement as Spark's grammar has it, and the constraints of a table that it makes.

    ``columns_of``: a table's columns, partition keys last. Raises: InvalidOperationError for a constraint that is not
    understood.
    """
    if match := _CREATE.match(text):
        return _created(text, match)
    if match := _HOW.match(text):
        return match["alter"], None
    if match := _MERGE.match(text):
        return _merged(text, dotted(match["table"]), columns_of), None
    return text, None


def _created(text: str, match: re.Match[str]) -> tuple[str, Created | None]:
    properties: dict[str, str] = {}
    if match["transactional"]:
        properties["transactional"] = "true"
    elif not _IS_TRANSACTIONAL.search(text):
        return text, None
    end, created = match.end(), None
    if (order := _SORTED.search(text)) and (descending := _DESCENDING.findall(order["columns"])):
        properties["acid.descending"] = json.dumps([name.lower() for name in descending])
        listed = _DESCENDING.sub(r"`\1`", order["columns"])
        text = f"{text[: order.start('columns')]}{listed}{text[order.end('columns') :]}"
    tokens = sqlglot.tokenize(text, dialect=DIALECT)
    body = _parentheses(tokens, next((at for at, token in enumerate(tokens) if token.start >= end), len(tokens)))
    if body is not None:
        begin, end = body[0].start, body[-1].end + 1
        if any(_word(token) in _OF_HIVE for token in body):
            plain, words = without_words(f"CREATE TABLE t {text[begin:end]}")
            schema = definitions(plain)
            columns = column_definitions(schema)
            constraints = declarations(schema, words)
            properties["acid.constraints"] = json.dumps([_described(one) for one in constraints])
            types = {name: kind for name, kind, _ in (*columns, *_partition_columns(text, tokens))}
            created = Created(dotted(match["table"]), types, constraints)
            listed = ", ".join(f"`{name}` {kind}{_comment(comment)}" for name, kind, comment in columns)
            text = f"{text[:begin]}({listed}){text[end:]}"
            end = begin + len(listed) + 2
    return _with_properties(text, match, end, properties), created


def _with_properties(text: str, match: re.Match[str], end: int, properties: Mapping[str, str]) -> str:
    """``end``: where the clauses behind the columns begin."""
    pairs = ", ".join(f"{_quoted(key)}={_quoted(value)}" for key, value in properties.items())
    if pairs and (given := _PROPERTIES.search(text, end)):
        text = f"{text[: given.end()]}{pairs}, {text[given.end() :]}"
    elif pairs:
        text = f"{text[:end]} TBLPROPERTIES ({pairs}){text[end:]}"
    return text if not match["transactional"] else f"CREATE {text[match.end('transactional') :]}"


def _partition_columns(text: str, tokens: Sequence[Token]) -> Sequence[tuple[str, str, str | None]]:
    for at, token in enumerate(tokens):
        if token.text.upper() == "PARTITIONED BY" and (body := _parentheses(tokens, at + 1)) is not None:
            return column_definitions(definitions(f"CREATE TABLE t {text[body[0].start : body[-1].end + 1]}"))
    return ()


def _merged(text: str, table: TableRef, columns_of: Callable[[TableRef], Sequence[str]]) -> str:
    tokens = sqlglot.tokenize(text, dialect=DIALECT)
    for insert, values in reversed(list(pairwise(tokens))):
        if _word(insert) == "INSERT" and _word(values) == "VALUES":
            columns = ", ".join(f"`{name}`" for name in columns_of(table))
            text = f"{text[: values.start]}({columns}) {text[values.start :]}"
    return text


def _parentheses(tokens: Sequence[Token], begin: int) -> Sequence[Token] | None:
    """The tokens from an opening parenthesis at ``begin`` to the one that closes it; None where there is none."""
    depth = 0
    for at in range(begin, len(tokens)):
        depth += (tokens[at].token_type is TokenType.L_PAREN) - (tokens[at].token_type is TokenType.R_PAREN)
        if not depth:
            return tokens[begin : at + 1] if at > begin else None
    return None


def _word(token: Token) -> str:
    """A word that is not quoted, in capitals."""
    is_quoted = token.token_type in (TokenType.IDENTIFIER, TokenType.STRING)
    return "" if is_quoted else token.text.upper().split(" ")[0]


def _described(constraint: Declaration) -> Mapping[str, object]:
    return {**constraint._asdict(), "kind": constraint.kind.name}


def _comment(text: str | None) -> str:
    return "" if text is None else f" COMMENT {_quoted(text)}"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
