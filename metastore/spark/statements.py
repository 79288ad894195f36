"""SQL text → a statement value: which of our statements it is, and its parts as sqlglot trees. Pure.

Rule: a text is either one of the statements below, or ``PassThrough`` (Spark runs it unchanged), or refused with the
reason. A query that sqlglot cannot read is refused rather than passed on: Spark would read the files of an ACID
table without its delete events, and show wrong rows without a word.
"""

import re
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from metastore.errors import InvalidOperationError
from metastore.spark.constraint_syntax import Declaration, declarations, without_words

DIALECT = "spark"
_CREATE = re.compile(r"\s*create\s+(or\s+replace\s+)?(external\s+|(global\s+)?temp(orary)?\s+)?(table|view)\b",
                     re.IGNORECASE)
_DATA_STATEMENT = re.compile(r"\s*(select|with|from|insert|update|delete|merge|truncate)\b", re.IGNORECASE)
_SHOW = re.compile(r"\s*show\s+(transactions|locks|compactions)\s*;?\s*$", re.IGNORECASE)
_ABORT = re.compile(r"\s*abort\s+transactions((?:[\s,]+\d+)+)\s*;?\s*$", re.IGNORECASE)
_COMPACT = re.compile(
    r"\s*alter\s+table\s+(?P<table>[\w.`]+)(?:\s+partition\s*\((?P<partition>.*?)\))?\s+"
    r"compact\s+'(?P<kind>\w+)'(?P<wait>\s+and\s+wait)?\s*;?\s*$", re.IGNORECASE | re.DOTALL)
_SET_PROPERTIES = re.compile(
    r"\s*alter\s+table\s+(?P<table>[\w.`]+)\s+set\s+tblproperties\s*\((?P<pairs>.*)\)\s*;?\s*$",
    re.IGNORECASE | re.DOTALL)
_ADD_CONSTRAINT = re.compile(
    r"\s*alter\s+table\s+(?P<table>[\w.`]+)\s+add\s+(?P<constraint>constraint\s.*?);?\s*$", re.IGNORECASE | re.DOTALL)
_DROP_CONSTRAINT = re.compile(
    r"\s*alter\s+table\s+(?P<table>[\w.`]+)\s+drop\s+constraint\s+`?(?P<name>\w+)`?\s*;?\s*$", re.IGNORECASE)
_CHANGE_COLUMN = re.compile(
    r"\s*alter\s+table\s+(?P<table>[\w.`]+)\s+change\s+(column\s+)?`?(?P<old>\w+)`?\s+(?P<column>`?(?P<new>\w+)`?\s"
    r".*?);?\s*$", re.IGNORECASE | re.DOTALL)
_PROPERTY_PAIR = re.compile(r"""(['"])(?P<key>.*?)\1\s*=\s*(['"])(?P<value>.*?)\3""", re.DOTALL)
_PARTITION_PAIR = re.compile(r"\s*`?(\w+)`?\s*=\s*(?:'([^']*)'|\"([^\"]*)\"|([^,'\"\s]+))\s*(?:,|$)")


class TableRef(NamedTuple):
    """A table as the statement names it; ``db`` is None where it leaves the database out."""

    db: str | None
    table: str

    def __str__(self) -> str:
        """As it is written."""
        return f"{self.db}.{self.table}" if self.db else self.table


@dataclass(frozen=True)
class Query:
    """SELECT or WITH."""

    tree: exp.Expression


@dataclass(frozen=True)
class Insert:
    """INSERT INTO or OVERWRITE; ``partition`` maps a key to its literal's SQL, or to None when it is dynamic."""

    table: TableRef
    query: exp.Expression
    columns: tuple[str, ...] = ()
    partition: dict[str, str | None] = field(default_factory=dict)
    overwrite: bool = False

    def over(self, query: str) -> str:
        """The statement's text with ``query`` in the place of its own."""
        text = f"INSERT {'OVERWRITE' if self.overwrite else 'INTO'} TABLE {self.table}"
        if self.partition:
            keys = (f"`{key}`" if value is None else f"`{key}` = {value}" for key, value in self.partition.items())
            text += f" PARTITION ({', '.join(keys)})"
        if self.columns:
            text += f" ({', '.join(f'`{name}`' for name in self.columns)})"
        return f"{text} {query}"


@dataclass(frozen=True)
class MultiInsert:
    """FROM source INSERT ... INSERT ...: the SELECTs of ``inserts`` have no FROM and call the source ``alias``."""

    source: exp.Expression
    alias: str
    inserts: tuple[Insert, ...]


@dataclass(frozen=True)
class Update:
    """UPDATE: ``assignments`` maps a column to its new value."""

    table: TableRef
    alias: str
    assignments: dict[str, exp.Expression]
    where: exp.Expression | None


@dataclass(frozen=True)
class Delete:
    """DELETE."""

    table: TableRef
    alias: str
    where: exp.Expression | None


@dataclass(frozen=True)
class MergeBranch:
    """One WHEN: ``matched`` and ``by_source`` say when; ``action``: update, delete or insert; no ``values``: ``*``."""

    matched: bool
    by_source: bool
    condition: exp.Expression | None
    action: str
    values: dict[str, exp.Expression]


@dataclass(frozen=True)
class Merge:
    """MERGE INTO ... USING source ON condition WHEN ..."""

    table: TableRef
    alias: str
    source: exp.Expression
    source_alias: str
    on: exp.Expression
    branches: tuple[MergeBranch, ...]


@dataclass(frozen=True)
class Truncate:
    """TRUNCATE TABLE."""

    table: TableRef


@dataclass(frozen=True)
class CreateTable:
    """CREATE TABLE of a transactional table; ``query`` for CREATE TABLE ... AS SELECT."""

    table: TableRef
    columns: tuple[tuple[str, str, str | None], ...]
    partition_columns: tuple[tuple[str, str, str | None], ...]
    bucket_columns: tuple[str, ...]
    bucket_count: int
    properties: dict[str, str]
    location: str | None
    comment: str | None
    if_not_exists: bool
    query: exp.Expression | None
    file_format: str = "orc"
    constraints: tuple[Declaration, ...] = ()


@dataclass(frozen=True)
class Convert:
    """ALTER TABLE ... SET TBLPROPERTIES with ``transactional`` among the properties."""

    table: TableRef
    properties: dict[str, str]


@dataclass(frozen=True)
class AddConstraints:
    """ALTER TABLE ... ADD CONSTRAINT, or CHANGE COLUMN with constraints; ``column``: (name, type) that it repeats."""

    table: TableRef
    constraints: tuple[Declaration, ...]
    column: tuple[str, str] | None = None


@dataclass(frozen=True)
class DropConstraint:
    """ALTER TABLE ... DROP CONSTRAINT."""

    table: TableRef
    name: str


@dataclass(frozen=True)
class Compact:
    """ALTER TABLE ... [PARTITION (...)] COMPACT 'kind' [AND WAIT]."""

    table: TableRef
    partition: dict[str, str]
    kind: str
    wait: bool


@dataclass(frozen=True)
class Show:
    """SHOW TRANSACTIONS | LOCKS | COMPACTIONS."""

    what: str


@dataclass(frozen=True)
class AbortTransactions:
    """ABORT TRANSACTIONS id ..."""

    txn_ids: tuple[int, ...]


@dataclass(frozen=True)
class PassThrough:
    """Nothing of ours. ``tree``: of a CREATE TABLE or VIEW, which may read tables of ours."""

    tree: exp.Expression | None = field(default=None, compare=False)


Statement: TypeAlias = (Query | Insert | MultiInsert | Update | Delete | Merge | Truncate | CreateTable | Convert
                        | AddConstraints | DropConstraint | Compact | Show | AbortTransactions | PassThrough)


def parse(text: str) -> Statement:
    """Read one statement.

    Raises: InvalidOperationError for a data statement that cannot be understood, with what was wrong with it.
    """
    if (own := _own(text)) is not None:
        return own
    is_data = _DATA_STATEMENT.match(text) is not None
    if not is_data and not _CREATE.match(text):
        return PassThrough()
    words: list[frozenset[str]] = []
    try:
        if not is_data:
            text, words = without_words(text)
        trees = [tree for tree in sqlglot.parse(text, dialect=DIALECT) if tree is not None]
    except SqlglotError as error:
        if not is_data:
            return PassThrough()
        raise InvalidOperationError(f"This statement cannot be understood: {error}") from error
    if len(trees) != 1:
        raise InvalidOperationError(f"One statement at a time, please: this text holds {len(trees)}.")
    return _create(trees[0], words) if isinstance(trees[0], exp.Create) else _statement(trees[0])


def _own(text: str) -> Statement | None:
    """What no SQL parser knows: Hive's statements about transactions and tables."""
    if match := _SHOW.match(text):
        return Show(match[1].lower())
    if match := _ABORT.match(text):
        return AbortTransactions(tuple(int(number) for number in re.findall(r"\d+", match[1])))
    return _altered(text)


def _altered(text: str) -> Statement | None:
    """ALTER TABLE as far as it is ours."""
    if match := _COMPACT.match(text):
        return Compact(_dotted(match["table"]), _partition_literals(match["partition"] or ""), match["kind"].lower(),
                       wait=bool(match["wait"]))
    if match := _SET_PROPERTIES.match(text):
        properties = {pair["key"]: pair["value"] for pair in _PROPERTY_PAIR.finditer(match["pairs"])}
        if "transactional" in {key.lower() for key in properties}:
            return Convert(_dotted(match["table"]), properties)
    if match := _DROP_CONSTRAINT.match(text):
        return DropConstraint(_dotted(match["table"]), match["name"].lower())
    return _constraints_added(text)


def table_ref(tree: exp.Expression | None) -> TableRef:
    """The name of a table node."""
    if isinstance(tree, exp.Schema):
        tree = tree.this
    if not isinstance(tree, exp.Table) or not tree.name:
        raise InvalidOperationError("The statement's target must be a table's name, as DB.TABLE.")
    if tree.catalog:
        raise InvalidOperationError(f"{tree.sql(DIALECT)} names a catalog; write DB.TABLE.")
    return TableRef(tree.db.lower() or None, tree.name.lower())


def _statement(tree: exp.Expression) -> Statement:
    match tree:
        case exp.Insert():
            return _insert(tree)
        case exp.MultitableInserts():
            return _multi_insert(tree)
        case exp.Update():
            return _update(tree)
        case exp.Delete():
            return _delete(tree)
        case exp.Merge():
            return _merge(tree)
        case exp.TruncateTable():
            if len(tree.expressions) != 1 or tree.args.get("partition"):
                raise InvalidOperationError("TRUNCATE takes one whole table; delete the rows of a partition instead.")
            return Truncate(table_ref(tree.expressions[0]))
        case exp.Query():
            return Query(tree)
        case _:
            return PassThrough()


def _insert(tree: exp.Insert) -> Insert:
    target, columns = tree.this, ()
    if isinstance(target, exp.Schema):
        columns = tuple(column.name.lower() for column in target.expressions)
        target = target.this
    if not isinstance(target, exp.Table):
        raise InvalidOperationError("INSERT into a directory or a path is Spark's own and not part of a transaction.")
    spec = target.args.get("partition") or tree.args.get("partition")
    partition: dict[str, str | None] = {}
    for part in spec.expressions if isinstance(spec, exp.Partition) else ():
        if isinstance(part, exp.EQ):
            partition[part.this.name.lower()] = part.expression.sql(DIALECT)
        else:
            partition[part.name.lower()] = None
    query = tree.expression
    if isinstance(query, exp.Values):
        query = exp.select("*").from_(query)
    if with_ := tree.args.get("with_"):
        query = query.copy()
        query.set("with_", with_.copy())
    if not isinstance(query, exp.Query):
        raise InvalidOperationError("INSERT needs a SELECT or VALUES.")
    return Insert(table_ref(target), query, columns, partition, overwrite=bool(tree.args.get("overwrite")))


def _multi_insert(tree: exp.MultitableInserts) -> MultiInsert:
    source = tree.args["source"]
    if source.args.get("joins") or source.args.get("laterals"):
        raise InvalidOperationError("FROM of several INSERTs takes one table or subquery: "
                                    "FROM (SELECT ... JOIN ...) AS s.")
    for insert in tree.expressions:
        if not isinstance(insert.expression, exp.Select) or insert.expression.args.get("from_"):
            raise InvalidOperationError("Each INSERT behind FROM takes one SELECT without a FROM of its own.")
    query = exp.select("*").from_(source.copy())
    if with_ := tree.args.get("with_") or source.args.get("with_"):
        query.set("with_", with_.copy())
    return MultiInsert(query, source.alias_or_name or "source", tuple(_insert(insert) for insert in tree.expressions))


def _update(tree: exp.Update) -> Update:
    if tree.args.get("from_"):
        raise InvalidOperationError("UPDATE ... FROM is not Hive's: write it as MERGE INTO ... USING ... .")
    return Update(table_ref(tree.this), tree.this.alias_or_name, _assignments(tree.expressions), _where(tree))


def _delete(tree: exp.Delete) -> Delete:
    return Delete(table_ref(tree.this), tree.this.alias_or_name, _where(tree))


def _where(tree: exp.Expression) -> exp.Expression | None:
    where = tree.args.get("where")
    return where.this if where else None


def _assignments(expressions: list[exp.Expression]) -> dict[str, exp.Expression]:
    """SET a = x, b = y; empty for SET *."""
    result: dict[str, exp.Expression] = {}
    for assignment in expressions:
        if isinstance(assignment, exp.Star):
            return {}
        if not isinstance(assignment, exp.EQ) or not isinstance(assignment.this, exp.Column):
            raise InvalidOperationError(f"SET {assignment.sql(DIALECT)} is not COLUMN = VALUE.")
        name = assignment.this.name.lower()
        if name in result:
            raise InvalidOperationError(f"Column {name} is set twice.")
        result[name] = assignment.expression
    return result


def _merge(tree: exp.Merge) -> Merge:
    source = tree.args["using"]
    branches = tuple(_branch(when) for when in tree.args["whens"].expressions)
    source_alias = source.alias_or_name
    if not source_alias:
        raise InvalidOperationError("MERGE needs an alias for its source: USING (SELECT ...) AS s.")
    return Merge(table_ref(tree.this), tree.this.alias_or_name, source, source_alias, tree.args["on"], branches)


def _branch(when: exp.When) -> MergeBranch:
    then, matched = when.args["then"], bool(when.args.get("matched"))
    by_source = bool(when.args.get("source"))
    condition = when.args.get("condition")
    match then:
        case exp.Update():
            return MergeBranch(matched, by_source, condition, "update", _assignments(then.expressions))
        case exp.Insert():
            return MergeBranch(matched, by_source, condition, "insert", _inserted(then))
        case _ if then.name.upper() == "DELETE":
            return MergeBranch(matched, by_source, condition, "delete", {})
    raise InvalidOperationError(f"MERGE cannot do {then.sql(DIALECT)}.")


def _inserted(then: exp.Insert) -> dict[str, exp.Expression]:
    if isinstance(then.this, exp.Star) or (then.this is None and isinstance(then.expression, exp.Star)):
        return {}
    if then.expression is None:
        raise InvalidOperationError("WHEN NOT MATCHED THEN INSERT needs VALUES (...) or *.")
    if then.this is None:
        raise InvalidOperationError("WHEN NOT MATCHED THEN INSERT needs its columns: INSERT (a, b) VALUES (x, y).")
    columns = [column.name.lower() for column in then.this.expressions]
    values = then.expression.expressions
    if len(columns) != len(values):
        raise InvalidOperationError(f"INSERT names {len(columns)} columns and gives {len(values)} values.")
    return dict(zip(columns, values, strict=True))


def _constraints_added(text: str) -> AddConstraints | None:
    """ALTER TABLE that adds constraints, read as a CREATE TABLE that has nothing else."""
    match = _ADD_CONSTRAINT.match(text)
    changed = None if match else _CHANGE_COLUMN.match(text)
    found = match or changed
    if found is None:
        return None
    item = found["constraint"] if match else found["column"]
    plain, words = without_words(f"CREATE TABLE t ({item})")
    if not words and changed:
        return None  # an alteration of the column, which is Spark's
    try:
        schema = sqlglot.parse_one(plain, dialect=DIALECT).this
    except SqlglotError as error:
        raise InvalidOperationError(f"This constraint cannot be understood: {error}") from error
    constraints, columns = declarations(schema, words), _columns(schema.expressions) if changed else ()
    if changed and changed["old"].lower() != changed["new"].lower():
        raise InvalidOperationError("One thing at a time: rename the column first, then add its constraint.")
    return AddConstraints(_dotted(found["table"]), constraints, columns[0][:2] if columns else None)


def _create(tree: exp.Create, words: list[frozenset[str]]) -> CreateTable | PassThrough:
    properties = tree.args.get("properties")
    nodes = properties.expressions if properties else []
    named = {node.this.name.lower(): node.args["value"].name for node in nodes if type(node) is exp.Property}
    if tree.kind != "TABLE" or named.get("transactional", "").lower() != "true":
        return PassThrough(tree)
    insert_only = named.get("transactional_properties", "").lower() == "insert_only"
    location = comment = None
    file_format = "orc"
    partition: tuple[tuple[str, str, str | None], ...] = ()
    buckets: tuple[tuple[str, ...], int] = ((), 0)
    for node in nodes:
        match node:
            case exp.LocationProperty():
                location = node.this.name
            case exp.SchemaCommentProperty():
                comment = node.this.name
            case exp.PartitionedByProperty():
                partition = _columns(node.this.expressions)
            case exp.ClusteredByProperty():
                names = tuple(column.name.lower() for column in node.expressions)
                buckets = (names, int(node.args["buckets"].name))
            case exp.FileFormatProperty():
                file_format = node.name.lower()
    if file_format != "orc" and not insert_only:
        raise InvalidOperationError(f"Full ACID tables are STORED AS ORC, not {file_format.upper()}.")
    columns: tuple[tuple[str, str, str | None], ...] = ()
    constraints: tuple[Declaration, ...] = ()
    if isinstance(tree.this, exp.Schema):
        columns = _columns([node for node in tree.this.expressions if isinstance(node, exp.ColumnDef)])
        constraints = declarations(tree.this, words)
    return CreateTable(table_ref(tree.this), columns, partition, *buckets, named, location, comment,
                       if_not_exists=bool(tree.args.get("exists")), query=tree.expression, file_format=file_format,
                       constraints=constraints)


def _columns(nodes: list[exp.Expression]) -> tuple[tuple[str, str, str | None], ...]:
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


def _dotted(text: str) -> TableRef:
    db, _, table = text.replace("`", "").lower().rpartition(".")
    return TableRef(db or None, table)


def _partition_literals(text: str) -> dict[str, str]:
    return {match[1].lower(): next(value for value in match.groups()[1:] if value is not None)
            for match in _PARTITION_PAIR.finditer(text)}
