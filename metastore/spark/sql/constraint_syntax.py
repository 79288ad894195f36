"""Constraints as Hive's DDL writes them: NOT NULL, DEFAULT, CHECK and keys, with ENABLE, VALIDATE and RELY. Pure.

sqlglot reads the constraints but not Hive's words behind them, so these are taken out of the text first and given back
to their constraints by order. Rule: what is not enforced is not accepted as enforced: keys are DISABLE, and nothing
looks at rows that are there already (NOVALIDATE), as in Hive.
"""

from collections.abc import Iterator

import sqlglot
from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from metastore.catalog.model import ConstraintKind
from metastore.client.declared_constraints import Declaration
from metastore.errors import InvalidOperationError
from metastore.spark.sql.dialect import DIALECT

_WORDS = {"ENABLE", "ENFORCED", "DISABLE", "VALIDATE", "NOVALIDATE", "RELY", "NORELY"}
_STARTS = {"DEFAULT", "CHECK", "UNIQUE", "PRIMARY", "FOREIGN"}
_KEYS = {ConstraintKind.PRIMARY_KEY, ConstraintKind.UNIQUE, ConstraintKind.FOREIGN_KEY}
_NAMES = {
    ConstraintKind.PRIMARY_KEY: "PRIMARY KEY",
    ConstraintKind.UNIQUE: "UNIQUE",
    ConstraintKind.FOREIGN_KEY: "FOREIGN KEY",
    ConstraintKind.NOT_NULL: "NOT NULL",
    ConstraintKind.DEFAULT: "DEFAULT",
    ConstraintKind.CHECK: "CHECK",
}


def without_words(text: str) -> tuple[str, list[frozenset[str]]]:
    """A CREATE TABLE without Hive's words behind its constraints, and for each constraint the words it had."""
    words: list[set[str]] = []
    cuts: list[tuple[int, int]] = []
    for item in _items(text):
        has_foreign = False
        for number, token in enumerate(item):
            is_quoted = token.token_type is TokenType.IDENTIFIER
            word = "" if is_quoted else token.text.upper().split(" ")[0]  # PRIMARY KEY is one token
            before = item[number - 1] if number else None
            negated = before is not None and before.text.upper() == "NOT"
            if word in _WORDS and words and number:
                cuts.append((before.start if negated and before is not None else token.start, token.end + 1))
                words[-1].add(f"NOT {word}" if negated else word)
            elif word in _STARTS or (word == "NULL" and negated) or (word == "REFERENCES" and not has_foreign):
                has_foreign |= word == "FOREIGN"
                words.append(set())
    for start, end in reversed(cuts):
        text = f"{text[:start]} {text[end:]}"
    return text, [frozenset(behind) for behind in words]


def _items(text: str) -> Iterator[list[Token]]:
    """The columns and constraints in the first parentheses of a statement, each without what is in parentheses."""
    depth = 0
    item: list[Token] = []
    for token in sqlglot.tokenize(text, dialect=DIALECT):
        if token.token_type is TokenType.L_PAREN:
            depth += 1
        elif token.token_type is TokenType.R_PAREN:
            depth -= 1
        elif depth == 1 and token.token_type is TokenType.COMMA:
            yield item
            item = []
        elif depth == 1:
            item.append(token)
        if item and not depth:
            break  # what follows the columns has no constraints
    yield item


def declarations(schema: exp.Schema, words: list[frozenset[str]]) -> tuple[Declaration, ...]:
    """The constraints of a CREATE TABLE's columns and of the table. Raises: InvalidOperationError."""
    declared = list(_declared(schema))
    if len(declared) != len(words):
        raise InvalidOperationError(
            "The constraints of this CREATE TABLE cannot be understood: put each one's ENABLE, "
            "DISABLE, NOVALIDATE, RELY directly behind it."
        )
    return tuple(_with_words(declaration, behind) for declaration, behind in zip(declared, words, strict=True))


def _with_words(declared: Declaration, words: frozenset[str]) -> Declaration:
    is_key = declared.kind in _KEYS
    enabled = (
        not is_key
        if not words & {"ENABLE", "ENFORCED", "DISABLE", "NOT ENFORCED"}
        else bool(words & {"ENABLE", "ENFORCED"})
    )
    name = _NAMES[declared.kind] + (f" {declared.name}" if declared.name else "")
    if enabled and is_key:
        raise InvalidOperationError(f"{name}: keys are not enforced. Declare it DISABLE NOVALIDATE.")
    if "VALIDATE" in words:
        raise InvalidOperationError(
            f"{name}: VALIDATE is not supported, rows that are there are not looked at. Declare it NOVALIDATE."
        )
    relied_on = "RELY" in words or (not is_key and enabled and "NORELY" not in words)
    return declared._replace(is_enabled=enabled, is_relied_on=relied_on)


def _declared(schema: exp.Schema) -> Iterator[Declaration]:
    for node in schema.expressions:
        match node:
            case exp.ColumnDef():
                for constraint in node.constraints:
                    if not isinstance(constraint.kind, exp.CommentColumnConstraint):
                        yield _of(constraint.kind, constraint.name.lower() or None, (node.name.lower(),))
            case exp.Constraint():
                for constraint in node.expressions:
                    yield _of(constraint, node.name.lower() or None, ())
            case exp.Identifier():
                pass
            case _:
                yield _of(node, None, ())


def _of(node: exp.Expr, name: str | None, columns: tuple[str, ...]) -> Declaration:
    match node:
        case exp.NotNullColumnConstraint() if not node.args.get("allow_null"):
            return Declaration(ConstraintKind.NOT_NULL, name, columns)
        case exp.DefaultColumnConstraint():
            return Declaration(ConstraintKind.DEFAULT, name, columns, node.this.sql(DIALECT))
        case exp.CheckColumnConstraint():
            return Declaration(ConstraintKind.CHECK, name, columns, node.this.sql(DIALECT))
        case exp.PrimaryKeyColumnConstraint():
            return Declaration(ConstraintKind.PRIMARY_KEY, name, columns)
        case exp.PrimaryKey():
            return Declaration(ConstraintKind.PRIMARY_KEY, name, _names(node.expressions))
        case exp.UniqueColumnConstraint():
            named = node.this.expressions if isinstance(node.this, exp.Schema) else []
            return Declaration(ConstraintKind.UNIQUE, name, _names(named) or columns)
        case exp.ForeignKey():
            return _foreign(node.args.get("reference"), name, _names(node.expressions))
        case exp.Reference():
            return _foreign(node, name, columns)
    raise InvalidOperationError(f"{node.sql(DIALECT)} is not a constraint that is supported.")


def _foreign(reference: exp.Expr | None, name: str | None, columns: tuple[str, ...]) -> Declaration:
    schema = reference.this if reference is not None else None
    if not isinstance(schema, exp.Schema) or len(schema.expressions) != len(columns):
        raise InvalidOperationError(f"FOREIGN KEY ({', '.join(columns)}) needs REFERENCES with as many columns.")
    table = schema.this
    return Declaration(
        ConstraintKind.FOREIGN_KEY,
        name,
        columns,
        None,
        (table.db.lower() or None, table.name.lower()),
        _names(schema.expressions),
    )


def _names(nodes: list[exp.Expr]) -> tuple[str, ...]:
    return tuple(node.name.lower() for node in nodes)
