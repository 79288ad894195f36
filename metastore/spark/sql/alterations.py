"""ALTER TABLE → a statement value, as far as it is ours: properties, constraints, columns. Pure.

No SQL parser knows Hive's statements, so they are read by their words; their definitions of columns by sqlglot.
"""

import re

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from metastore.acid_tables.table import ColumnDefinition
from metastore.errors import InvalidOperationError
from metastore.spark.sql.constraint_syntax import declarations, without_words
from metastore.spark.sql.dialect import DIALECT
from metastore.spark.sql.statements import (
    AddColumns,
    AddConstraints,
    ChangeColumn,
    Convert,
    DropColumns,
    DropConstraint,
    PlainOnly,
    ReplaceColumns,
    Statement,
    dotted,
)

_SET_PROPERTIES = re.compile(
    r"\s*alter\s+table\s+(?P<table>[\w.`]+)\s+set\s+tblproperties\s*\((?P<pairs>.*)\)\s*;?\s*$",
    re.IGNORECASE | re.DOTALL,
)
_ADD_CONSTRAINT = re.compile(
    r"\s*alter\s+table\s+(?P<table>[\w.`]+)\s+add\s+(?P<constraint>constraint\s.*?);?\s*$", re.IGNORECASE | re.DOTALL
)
_DROP_CONSTRAINT = re.compile(
    r"\s*alter\s+table\s+(?P<table>[\w.`]+)\s+drop\s+constraint\s+`?(?P<name>\w+)`?\s*;?\s*$", re.IGNORECASE
)
_CHANGE_COLUMN = re.compile(
    r"\s*alter\s+table\s+(?P<table>[\w.`]+)\s+change\s+(column\s+)?`?(?P<old>\w+)`?\s+(?P<column>`?(?P<new>\w+)`?\s"
    r".*?);?\s*$",
    re.IGNORECASE | re.DOTALL,
)
_ALTER = r"\s*alter\s+table\s+(?P<table>[\w.`]+)\s+"
_RENAME_COLUMN = re.compile(
    _ALTER + r"rename\s+column\s+`?(?P<old>\w+)`?\s+to\s+`?(?P<new>\w+)`?\s*;?\s*$", re.IGNORECASE
)
_COLUMN_TYPE = re.compile(
    _ALTER + r"(?:alter|change)\s+(?:column\s+)?`?(?P<name>\w+)`?\s+type\s+(?P<type>.*?)\s*;?\s*$",
    re.IGNORECASE | re.DOTALL,
)
_ADD_COLUMNS = re.compile(
    _ALTER + r"add\s+columns?\s*(?P<columns>\(.*\)|[^(\s].*?)(?:\s*\b(?P<how>restrict|cascade))?\s*;?\s*$",
    re.IGNORECASE | re.DOTALL,
)
_DROP_COLUMNS = re.compile(_ALTER + r"drop\s+columns?\s+(?P<names>\(?[\w`,\s]+\)?)\s*;?\s*$", re.IGNORECASE)
_REPLACE_COLUMNS = re.compile(
    _ALTER + r"replace\s+columns\s*\((?P<columns>.*)\)\s*(?P<how>restrict|cascade)?\s*;?\s*$", re.IGNORECASE | re.DOTALL
)
_PLACE = re.compile(r"\s+(?:(?P<first>first)|after\s+`?(?P<after>\w+)`?)\s*$", re.IGNORECASE)
_HOW = re.compile(r"\s+(?P<how>restrict|cascade)\s*$", re.IGNORECASE)
_PROPERTY_PAIR = re.compile(r"""(['"])(?P<key>.*?)\1\s*=\s*(['"])(?P<value>.*?)\3""", re.DOTALL)
_PARTITION_PAIR = re.compile(r"\s*`?(\w+)`?\s*=\s*(?:'([^']*)'|\"([^\"]*)\"|([^,'\"\s]+))\s*(?:,|$)")


def altered_table(text: str) -> Statement | None:
    """ALTER TABLE as far as it is ours."""
    if match := _SET_PROPERTIES.match(text):
        properties = property_pairs(match["pairs"])
        if "transactional" in {key.lower() for key in properties}:
            return Convert(dotted(match["table"]), properties)
    if match := _DROP_CONSTRAINT.match(text):
        return DropConstraint(dotted(match["table"]), match["name"].lower())
    return _constraints_added(text) or _columns_altered(text)


def _columns_altered(text: str) -> AddColumns | ChangeColumn | ReplaceColumns | DropColumns | PlainOnly | None:
    """Changes of columns, in Hive's words or in Spark's; None for what is not understood, which Spark may refuse."""
    if match := _ADD_COLUMNS.match(text):
        return _added(match["table"], match["columns"].strip(), is_cascade=(match["how"] or "").lower() == "cascade")
    if match := _RENAME_COLUMN.match(text):
        return ChangeColumn(dotted(match["table"]), match["old"].lower(), match["new"].lower())
    if match := _COLUMN_TYPE.match(text):
        name = match["name"].lower()
        return _changed(match["table"], name, f"`{name}` {match['type']}")
    if match := _DROP_COLUMNS.match(text):
        names = tuple(name.strip(" `\n\t").lower() for name in match["names"].strip("() ").split(","))
        return DropColumns(dotted(match["table"]), names)
    if match := _REPLACE_COLUMNS.match(text):
        columns = _definitions(match["columns"])
        is_cascade = (match["how"] or "").lower() == "cascade"
        return ReplaceColumns(dotted(match["table"]), columns, is_cascade) if columns else None
    match = _CHANGE_COLUMN.match(text)
    return _changed(match["table"], match["old"].lower(), match["column"]) if match else None


def _changed(table: str, old: str, item: str) -> ChangeColumn | None:
    how = _HOW.search(item)
    item = item[: how.start()] if how else item
    place = _PLACE.search(item)
    columns = _definitions(item[: place.start()] if place else item)
    if not columns or len(columns) != 1:
        return None
    after = (place["after"] or "").lower() if place else None
    return ChangeColumn(
        dotted(table),
        old,
        columns[0].name,
        columns[0].type,
        columns[0].comment,
        after,
        cascade=how is not None and how["how"].lower() == "cascade",
    )


def _added(table: str, items: str, *, is_cascade: bool) -> AddColumns | PlainOnly:
    items = items[1:-1] if items.startswith("(") else items
    columns = _definitions(items)
    if not columns or _says_more(items):
        return PlainOnly(
            dotted(table),
            "ADD COLUMNS takes names, types and comments. CHANGE COLUMN moves a column, "
            "and ADD CONSTRAINT says what holds for it.",
        )
    return AddColumns(dotted(table), columns, is_cascade)


def _says_more(items: str) -> bool:
    """Whether column definitions have more than names, types and comments."""
    return any(
        any(value and part not in {"this", "kind", "constraints"} for part, value in one.args.items())
        or any(not isinstance(constraint.kind, exp.CommentColumnConstraint) for constraint in one.constraints)
        for one in sqlglot.parse_one(f"CREATE TABLE t ({items})", dialect=DIALECT).find_all(exp.ColumnDef)
    )


def _definitions(items: str) -> tuple[ColumnDefinition, ...] | None:
    try:
        schema = sqlglot.parse_one(f"CREATE TABLE t ({items})", dialect=DIALECT).this
    except SqlglotError:
        return None
    columns = tuple(ColumnDefinition(*column) for column in column_definitions(schema.expressions))
    return columns if all(column.type for column in columns) else None


def _constraints_added(text: str) -> AddConstraints | None:
    """ALTER TABLE that adds constraints, read as a CREATE TABLE that has nothing else."""
    match = _ADD_CONSTRAINT.match(text)
    changed = None if match else _CHANGE_COLUMN.match(text)
    parts = match or changed
    if parts is None:
        return None
    item = parts["constraint"] if match else parts["column"]
    plain, words = without_words(f"CREATE TABLE t ({item})")
    if not words and changed:
        return None  # an alteration of the column, which is Spark's
    try:
        schema = sqlglot.parse_one(plain, dialect=DIALECT).this
    except SqlglotError as error:
        raise InvalidOperationError(f"This constraint cannot be understood: {error}") from error
    constraints, columns = declarations(schema, words), column_definitions(schema.expressions) if changed else ()
    if changed and changed["old"].lower() != changed["new"].lower():
        raise InvalidOperationError("One thing at a time: rename the column first, then add its constraint.")
    return AddConstraints(dotted(parts["table"]), constraints, columns[0][:2] if columns else None)


def column_definitions(nodes: list[exp.Expr]) -> tuple[tuple[str, str, str | None], ...]:
    """(name, Hive type, comment) of each column definition; the type is "" where only a name is given."""
    result = []
    for node in nodes:
        if not isinstance(node, exp.ColumnDef):
            result.append((node.name.lower(), "", None))
            continue
        comment = None
        for constraint in node.constraints:
            if isinstance(constraint.kind, exp.CommentColumnConstraint):
                comment = constraint.kind.this.name
        kind = node.args["kind"].sql("hive").lower() if node.args.get("kind") else ""
        result.append((node.name.lower(), kind.replace(": ", ":").replace(", ", ","), comment))
    return tuple(result)


def property_pairs(text: str) -> dict[str, str]:
    """What stands in the parentheses of TBLPROPERTIES."""
    return {pair["key"]: pair["value"] for pair in _PROPERTY_PAIR.finditer(text)}


def partition_literals(text: str) -> dict[str, str]:
    """What stands in the parentheses of PARTITION, by the names of the keys in lower case."""
    return {
        match[1].lower(): next(value for value in match.groups()[1:] if value is not None)
        for match in _PARTITION_PAIR.finditer(text)
    }
