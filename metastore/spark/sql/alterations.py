"""ALTER TABLE → a statement value, as far as it is ours: properties and constraints in Hive's words. Pure.

No SQL parser knows Hive's statements, so they are read by their words; their definitions of columns by sqlglot.
"""

import re

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from metastore.errors import InvalidOperationError
from metastore.spark.sql.constraint_syntax import declarations, without_words
from metastore.spark.sql.dialect import DIALECT
from metastore.spark.sql.statements import AddConstraints, Convert, DropConstraint, dotted

_ALTER = r"alter\s+table\s+(?P<table>[\w.`]+)\s+"
_FLAGS = re.IGNORECASE | re.DOTALL
_SET_PROPERTIES = re.compile(_ALTER + r"set\s+tblproperties\s*\((?P<pairs>.*)\)\s*;?\s*$", _FLAGS)
_ADD_CONSTRAINT = re.compile(_ALTER + r"add\s+(?P<item>constraint\s.*?);?\s*$", _FLAGS)
_DROP_CONSTRAINT = re.compile(_ALTER + r"drop\s+constraint\s+`?(?P<name>\w+)`?\s*;?\s*$", re.IGNORECASE)
_CHANGE_COLUMN = re.compile(
    _ALTER + r"change\s+(column\s+)?`?(?P<old>\w+)`?\s+(?P<item>`?(?P<new>\w+)`?\s.*?);?\s*$", _FLAGS
)
_PROPERTY_PAIR = re.compile(r"""(['"])(?P<key>.*?)\1\s*=\s*(['"])(?P<value>.*?)\3""", re.DOTALL)
_PARTITION_PAIR = re.compile(r"\s*`?(\w+)`?\s*=\s*(?:'([^']*)'|\"([^\"]*)\"|([^,'\"\s]+))\s*(?:,|$)")


def altered_table(text: str) -> Convert | AddConstraints | DropConstraint | None:
    """ALTER TABLE as far as it is ours. Raises: InvalidOperationError for a constraint that is not understood."""
    if match := _SET_PROPERTIES.match(text):
        properties = property_pairs(match["pairs"])
        if "transactional" in {key.lower() for key in properties}:
            return Convert(dotted(match["table"]), properties)
    if match := _DROP_CONSTRAINT.match(text):
        return DropConstraint(dotted(match["table"]), match["name"].lower())
    return _constraints_added(text)


def _constraints_added(text: str) -> AddConstraints | None:
    """ALTER TABLE that adds constraints, read as a CREATE TABLE that has nothing else."""
    added = _ADD_CONSTRAINT.match(text)
    changed = None if added else _CHANGE_COLUMN.match(text)
    parts = added or changed
    if parts is None:
        return None
    plain, words = without_words(f"CREATE TABLE t ({parts['item']})")
    if not words and changed:
        return None  # an alteration of the column, which is Spark's
    schema = definitions(plain)
    constraints, columns = declarations(schema, words), column_definitions(schema) if changed else ()
    if changed and changed["old"].lower() != changed["new"].lower():
        raise InvalidOperationError("One thing at a time: rename the column first, then add its constraint.")
    return AddConstraints(dotted(parts["table"]), constraints, columns[0][:2] if columns else None)


def definitions(create: str) -> exp.Schema:
    """The columns and constraints of a CREATE TABLE that has nothing else. Raises: InvalidOperationError."""
    try:
        schema = sqlglot.parse_one(create, dialect=DIALECT).this
    except SqlglotError as error:
        raise InvalidOperationError(f"This constraint cannot be understood: {error}") from error
    if not isinstance(schema, exp.Schema):
        raise InvalidOperationError("This constraint cannot be understood.")
    return schema


def column_definitions(schema: exp.Schema) -> tuple[tuple[str, str, str | None], ...]:
    """(name, Hive type, comment) of each column definition."""
    result = []
    for node in schema.expressions:
        if not isinstance(node, exp.ColumnDef):
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
