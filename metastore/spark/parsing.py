"""SQL text → a statement value (module ``statements``): which of our statements it is, and its parts. Pure.

Rule: a text is either one of ours, or ``PassThrough`` (Spark runs it unchanged), or refused with the reason. A query
that sqlglot cannot read is refused rather than passed on: Spark would read the files of an ACID table without its
delete events, and show wrong rows without a word. Comments in front of a statement do not change what it is.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from metastore.errors import InvalidOperationError
from metastore.spark.constraint_syntax import Declaration, declarations, without_words
from metastore.spark.dialect import DIALECT
from metastore.spark.statements import (
    AbortTransactions,
    AddConstraints,
    ChangeColumn,
    ColumnDefinition,
    Compact,
    Convert,
    CreateTable,
    Delete,
    DropColumns,
    DropConstraint,
    Insert,
    Merge,
    MergeBranch,
    MultiInsert,
    PassThrough,
    PlainOnly,
    Query,
    ReplaceColumns,
    Show,
    Statement,
    TableRef,
    Truncate,
    Update,
)

_CREATE = re.compile(r"\s*create\s+(or\s+replace\s+)?(external\s+|(global\s+)?temp(orary)?\s+)?(table|view)\b",
                     re.IGNORECASE)
_DATA_STATEMENT = re.compile(r"(\(\s*)*(select|with|from|insert|update|delete|merge|truncate|cache)\b", re.IGNORECASE)
_LEADING = re.compile(r"\A(?:\s+|--[^\n]*(?:\n|$)|/\*.*?\*/)*", re.DOTALL)
_TABLE = re.compile(r"table\s+(?P<table>[\w.`]+)\s*;?\s*$", re.IGNORECASE)
_PLAIN_ONLY = (
    (re.compile(r"load\s+data\b.*\binto\s+table\s+(?P<table>[\w.`]+)", re.IGNORECASE | re.DOTALL),
     ("LOAD DATA by Spark puts files into its directory that belong to no transaction. Read them with spark.read, and "
      "insert the rows.")),
    (re.compile(r"analyze\s+table\s+(?P<table>[\w.`]+)", re.IGNORECASE),
     "ANALYZE by Spark counts rows that are deleted, and not those of deltas."))
"""What Spark does to tables, and does wrong to transactional ones."""
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
_ALTER = r"\s*alter\s+table\s+(?P<table>[\w.`]+)\s+"
_RENAME_COLUMN = re.compile(
    _ALTER + r"rename\s+column\s+`?(?P<old>\w+)`?\s+to\s+`?(?P<new>\w+)`?\s*;?\s*$", re.IGNORECASE)
_COLUMN_TYPE = re.compile(
    _ALTER + r"(?:alter|change)\s+(?:column\s+)?`?(?P<name>\w+)`?\s+type\s+(?P<type>.*?)\s*;?\s*$",
    re.IGNORECASE | re.DOTALL)
_DROP_COLUMNS = re.compile(_ALTER + r"drop\s+columns?\s+(?P<names>\(?[\w`,\s]+\)?)\s*;?\s*$", re.IGNORECASE)
_REPLACE_COLUMNS = re.compile(_ALTER + r"replace\s+columns\s*\((?P<columns>.*)\)\s*(?P<how>restrict|cascade)?\s*;?\s*$",
                              re.IGNORECASE | re.DOTALL)
_PLACE = re.compile(r"\s+(?:(?P<first>first)|after\s+`?(?P<after>\w+)`?)\s*$", re.IGNORECASE)
_HOW = re.compile(r"\s+(?P<how>restrict|cascade)\s*$", re.IGNORECASE)
_PROPERTY_PAIR = re.compile(r"""(['"])(?P<key>.*?)\1\s*=\s*(['"])(?P<value>.*?)\3""", re.DOTALL)
_PARTITION_PAIR = re.compile(r"\s*`?(\w+)`?\s*=\s*(?:'([^']*)'|\"([^\"]*)\"|([^,'\"\s]+))\s*(?:,|$)")


def parse(text: str) -> Statement:
    """Read one statement.

    Raises: InvalidOperationError for a data statement that cannot be understood, with what was wrong with it.
    """
    text = _LEADING.sub("", text, count=1)
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
    if match := _TABLE.match(text):
        return Query(exp.select("*").from_(match["table"], dialect=DIALECT))
    for pattern, reason in _PLAIN_ONLY:
        if match := pattern.match(text):
            return PlainOnly(_dotted(match["table"]), reason)
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
    return _constraints_added(text) or _columns_altered(text)


def _columns_altered(text: str) -> ChangeColumn | ReplaceColumns | DropColumns | None:
    """Changes of columns, in Hive's words or in Spark's; None for what is not understood, which Spark may refuse."""
    if match := _RENAME_COLUMN.match(text):
        return ChangeColumn(_dotted(match["table"]), match["old"].lower(), match["new"].lower())
    if match := _COLUMN_TYPE.match(text):
        name = match["name"].lower()
        return _changed(match["table"], name, f"`{name}` {match['type']}")
    if match := _DROP_COLUMNS.match(text):
        names = tuple(name.strip(" `\n\t").lower() for name in match["names"].strip("() ").split(","))
        return DropColumns(_dotted(match["table"]), names)
    if match := _REPLACE_COLUMNS.match(text):
        columns = _definitions(match["columns"])
        is_cascade = (match["how"] or "").lower() == "cascade"
        return ReplaceColumns(_dotted(match["table"]), columns, is_cascade) if columns else None
    match = _CHANGE_COLUMN.match(text)
    return _changed(match["table"], match["old"].lower(), match["column"]) if match else None


def _changed(table: str, old: str, item: str) -> ChangeColumn | None:
    how = _HOW.search(item)
    item = item[:how.start()] if how else item
    place = _PLACE.search(item)
    columns = _definitions(item[:place.start()] if place else item)
    if not columns or len(columns) != 1:
        return None
    after = (place["after"] or "").lower() if place else None
    return ChangeColumn(_dotted(table), old, columns[0].name, columns[0].type, columns[0].comment, after,
                        cascade=bool(how) and how["how"].lower() == "cascade")  # type: ignore[index]


def _definitions(items: str) -> tuple[ColumnDefinition, ...] | None:
    try:
        schema = sqlglot.parse_one(f"CREATE TABLE t ({items})", dialect=DIALECT).this
    except SqlglotError:
        return None
    columns = tuple(ColumnDefinition(*column) for column in _columns(schema.expressions))
    return columns if all(column.type for column in columns) else None


def table_ref(tree: exp.Expression | None) -> TableRef:
    """The name of a table node."""
    if isinstance(tree, exp.Schema):
        tree = tree.this
    if not isinstance(tree, exp.Table) or not tree.name:
        raise InvalidOperationError("The statement's target must be a table's name, as DB.TABLE.")
    if any(value and part not in {"this", "db", "catalog", "alias", "partition"} for part, value in tree.args.items()):
        raise InvalidOperationError(f"The statement's target must be a table, and is {tree.sql(DIALECT)}.")
    if tree.catalog:
        raise InvalidOperationError(f"{tree.sql(DIALECT)} names a catalog; write DB.TABLE.")
    return TableRef(tree.db.lower() or None, tree.name.lower())


_UNDERSTOOD: dict[type[exp.Expression], set[str]] = {
    exp.Insert: {"this", "expression", "overwrite", "partition", "with_", "by_name"},
    exp.MultitableInserts: {"source", "expressions", "with_"},
    exp.Update: {"this", "expressions", "where", "from_"},
    exp.Delete: {"this", "where"},
    exp.Merge: {"this", "using", "on", "whens"},
    exp.TruncateTable: {"expressions", "partition"},
}
"""The parts of a statement that mean something here. Any other would be passed over: such a statement is refused."""


def _require_understood(tree: exp.Expression) -> None:
    known = _UNDERSTOOD.get(type(tree))
    for part, value in tree.args.items():
        if known is not None and value and part not in known:
            hint = " Put it into a subquery, or a temporary view." if part == "with_" else ""
            what = f"{tree.key.removesuffix('table')} ... {part.strip('_')}".upper()
            raise InvalidOperationError(f"{what} is not supported.{hint}")


def _statement(tree: exp.Expression) -> Statement:
    _require_understood(tree)
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
            return _truncate(tree)
        case exp.Query():
            return Query(tree)
        case _:
            return PassThrough(tree if isinstance(tree, exp.Cache) else None)


def _truncate(tree: exp.TruncateTable) -> Truncate:
    spec = tree.args.get("partition")
    given = spec.expressions if spec else []
    if len(tree.expressions) != 1 or not all(isinstance(one, exp.EQ) for one in given):
        raise InvalidOperationError("TRUNCATE takes one table, or its partitions with given values: PARTITION (k = v).")
    return Truncate(table_ref(tree.expressions[0]),
                    {one.this.name.lower(): one.expression.sql(DIALECT) for one in given})


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
    return Insert(table_ref(target), query, columns, partition, overwrite=bool(tree.args.get("overwrite")),
                  by_name=bool(tree.args.get("by_name")))


def _multi_insert(tree: exp.MultitableInserts) -> MultiInsert:
    for insert in tree.expressions:
        _require_understood(insert)
        if not isinstance(insert.expression, exp.Select) or insert.expression.args.get("from_"):
            raise InvalidOperationError("Each INSERT behind FROM takes one SELECT without a FROM of its own.")
    source = tree.args["source"]
    with_ = tree.args.get("with_") or source.args.get("with_")
    inserts = tuple(_insert(insert) for insert in tree.expressions)
    joins, laterals = source.args.get("joins") or [], source.args.get("laterals") or []
    if not joins and not laterals:
        query = exp.select("*").from_(source.copy())
        query.set("with_", with_.copy() if with_ else None)
        return MultiInsert(query, source.alias_or_name or "source", inserts)
    names = [one.alias_or_name for one in (source, *(join.this for join in joins), *laterals)]
    if not all(names) or len({name.lower() for name in names}) < len(names):
        raise InvalidOperationError("Each table and subquery that FROM joins for several INSERTs needs its own name.")
    query = _of_structs(source, names)
    query.set("with_", with_.copy() if with_ else None)
    return MultiInsert(query, "source", inserts, tuple(names))


def _of_structs(source: exp.Expression, names: Sequence[str]) -> exp.Select:
    """What FROM joins, as rows with one struct for each table: so columns keep the names that they are known by."""
    structs = (exp.alias_(exp.Struct(expressions=[exp.column(exp.Star(), table=name)]), name) for name in names)
    return exp.select(*structs).from_(source.copy())


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


@dataclass
class _Made:
    """What stands behind the columns of a CREATE TABLE."""

    location: str | None = None
    comment: str | None = None
    file_format: str = "orc"
    partition: tuple[tuple[str, str, str | None], ...] = ()
    bucket_columns: tuple[str, ...] = ()
    bucket_count: int = 0
    order: tuple[tuple[str, bool], ...] = ()

    def take(self, node: exp.Expression) -> None:
        match node:
            case exp.LocationProperty():
                self.location = node.this.name
            case exp.SchemaCommentProperty():
                self.comment = node.this.name
            case exp.PartitionedByProperty():
                self.partition = _columns(node.this.expressions)
            case exp.ClusteredByProperty():
                self.bucket_columns = tuple(column.name.lower() for column in node.expressions)
                self.bucket_count = int(node.args["buckets"].name)
                self.order = tuple((one.name.lower(), not one.args.get("desc"))
                                   for one in node.args.get("sorted_by") or ())
            case exp.FileFormatProperty():
                self.file_format = node.name.lower()


def _create(tree: exp.Create, words: list[frozenset[str]]) -> CreateTable | PassThrough:
    properties = tree.args.get("properties")
    nodes = properties.expressions if properties else []
    named = {node.this.name.lower(): node.args["value"].name for node in nodes if type(node) is exp.Property}
    if tree.kind != "TABLE" or named.get("transactional", "").lower() != "true":
        return PassThrough(tree)
    made = _Made()
    for node in nodes:
        made.take(node)
    is_insert_only = named.get("transactional_properties", "").lower() == "insert_only"
    if made.file_format != "orc" and not is_insert_only:
        raise InvalidOperationError(f"Full ACID tables are STORED AS ORC, not {made.file_format.upper()}.")
    if made.order and not is_insert_only:
        raise InvalidOperationError("Full ACID tables cannot be SORTED BY: their rows are in order of their ROW__IDs.")
    columns: tuple[tuple[str, str, str | None], ...] = ()
    constraints: tuple[Declaration, ...] = ()
    if isinstance(tree.this, exp.Schema):
        columns = _columns([node for node in tree.this.expressions if isinstance(node, exp.ColumnDef)])
        constraints = declarations(tree.this, words)
    return CreateTable(table_ref(tree.this), columns, made.partition, made.bucket_columns, made.bucket_count, named,
                       made.location, made.comment, if_not_exists=bool(tree.args.get("exists")), query=tree.expression,
                       file_format=made.file_format, constraints=constraints, order=made.order)


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
