"""SQL text → a statement value (module ``statements``): which of our statements it is, and its parts. Pure.

Rule: a text is either one of ours, or ``PassThrough`` (Spark runs it unchanged), or refused with the reason. A query
that sqlglot cannot read is refused rather than passed on: Spark would read the files of an ACID table without its
delete events, and show wrong rows without a word. Comments in front of a statement do not change what it is.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from metastore.client.declared_constraints import Declaration
from metastore.errors import InvalidOperationError
from metastore.spark.sql.alterations import altered_table, column_definitions
from metastore.spark.sql.compaction_syntax import of_compactions
from metastore.spark.sql.constant_folding import Compute, with_constants
from metastore.spark.sql.constraint_syntax import declarations, without_words
from metastore.spark.sql.dialect import DIALECT
from metastore.spark.sql.statements import (
    AbortTransactions,
    CreateLike,
    CreateTable,
    Delete,
    Insert,
    Merge,
    MergeBranch,
    MultiInsert,
    PassThrough,
    PlainOnly,
    Query,
    Show,
    Statement,
    TableRef,
    Truncate,
    Update,
    dotted,
)

_CREATE = re.compile(
    r"\s*create\s+(or\s+replace\s+)?(external\s+|(global\s+)?temp(orary)?\s+)?(table|view)\b", re.IGNORECASE
)
_CREATE_TRANSACTIONAL = re.compile(r"create\s+transactional\s+(?=table\b)", re.IGNORECASE)
"""Hive 4's short form of TBLPROPERTIES ('transactional'='true')."""
_DATA_STATEMENT = re.compile(r"(\(\s*)*(select|with|from|insert|update|delete|merge|truncate|cache)\b", re.IGNORECASE)
_LEADING = re.compile(r"\A(?:\s+|--[^\n]*(?:\n|$)|/\*.*?\*/)*", re.DOTALL)
_TABLE = re.compile(r"table\s+(?P<table>[\w.`]+)\s*;?\s*$", re.IGNORECASE)
_PLAIN_ONLY = (
    (
        re.compile(r"load\s+data\b.*\binto\s+table\s+(?P<table>[\w.`]+)", re.IGNORECASE | re.DOTALL),
        (
            "LOAD DATA by Spark puts files into its directory that belong to no transaction. "
            "Read them with spark.read, and insert the rows."
        ),
    ),
    (
        re.compile(r"analyze\s+table\s+(?P<table>[\w.`]+)", re.IGNORECASE),
        "ANALYZE by Spark counts rows that are deleted, and not those of deltas.",
    ),
    (
        re.compile(
            r"alter\s+table\s+(?P<table>[\w.`]+)\s+unset\s+tblproperties\b.*['\"]transactional(_properties)?['\"]",
            re.IGNORECASE | re.DOTALL,
        ),
        "There is no way back: copy its rows into a new table instead.",
    ),
    (
        re.compile(
            r"alter\s+table\s+(?P<table>[\w.`]+)\s+(partition\s*\(.*?\)\s*)?set\s+serde\b", re.IGNORECASE | re.DOTALL
        ),
        "Another SerDe would not read the files that it has: copy its rows into a new table instead.",
    ),
)
"""What Spark does to tables, and does wrong to transactional ones."""
_TAKES = re.compile(
    r"(?:drop\s+table\s+(?:if\s+exists\s+)?|alter\s+table\s+(?=[\w.`]+\s+(?:drop|rename|partition)\b))"
    r"(?P<table>[\w.`]+)",
    re.IGNORECASE,
)
_SHOW = re.compile(r"\s*show\s+(transactions|locks)\s*;?\s*$", re.IGNORECASE)
_ABORT = re.compile(r"\s*abort\s+transactions((?:[\s,]+\d+)+)\s*;?\s*$", re.IGNORECASE)


def parse(text: str, compute: Compute | None = None) -> Statement:
    """Read a statement; ``compute``: computes the constants in its conditions.

    Raises: InvalidOperationError for a data statement that cannot be understood, with what was wrong with it.
    """
    text = _LEADING.sub("", text, count=1)
    if (own := _own(text)) is not None:
        return own
    is_transactional = _CREATE_TRANSACTIONAL.match(text)
    if is_transactional:
        text = f"CREATE {text[is_transactional.end() :]}"
    is_data = _DATA_STATEMENT.match(text) is not None
    if not is_data and not _CREATE.match(text):
        match = _TAKES.match(text)
        return PassThrough(takes=dotted(match["table"]) if match else None)
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
    tree = with_constants(trees[0], compute) if compute is not None else trees[0]
    if isinstance(tree, exp.Create):
        return _create(tree, words, {"transactional": "true"} if is_transactional else {})
    return _statement(tree)


def parse_condition(text: str, compute: Compute) -> exp.Expr:
    """Read what may stand behind WHERE; ``compute``: as in ``parse``. Raises: InvalidOperationError."""
    try:
        where = exp.Where(this=exp.condition(text, dialect=DIALECT))
    except SqlglotError as error:
        raise InvalidOperationError(f"This condition cannot be understood: {error}") from error
    computed: exp.Expr = with_constants(where, compute).this
    return computed


def _own(text: str) -> Statement | None:
    """What no SQL parser knows: Hive's statements about transactions and tables."""
    if match := _SHOW.match(text):
        return Show(match[1].lower())
    if match := _ABORT.match(text):
        return AbortTransactions(tuple(int(number) for number in re.findall(r"\d+", match[1])))
    if match := _TABLE.match(text):
        return Query(exp.select("*").from_(match["table"], dialect=DIALECT))
    if (about := of_compactions(text)) is not None:
        return about
    for pattern, reason in _PLAIN_ONLY:
        if match := pattern.match(text):
            return PlainOnly(dotted(match["table"]), reason)
    return altered_table(text)


def table_ref(tree: exp.Expr | None) -> TableRef:
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


_UNDERSTOOD: dict[type[exp.Expr], set[str]] = {
    exp.Insert: {"this", "expression", "overwrite", "partition", "with_", "by_name"},
    exp.MultitableInserts: {"source", "expressions", "with_"},
    exp.Update: {"this", "expressions", "where", "from_"},
    exp.Delete: {"this", "where"},
    exp.Merge: {"this", "using", "on", "whens"},
    exp.TruncateTable: {"expressions", "partition"},
}
"""The parts of a statement that mean something here. Any other would be passed over: such a statement is refused."""


def _require_understood(tree: exp.Expr) -> None:
    known = _UNDERSTOOD.get(type(tree))
    for part, value in tree.args.items():
        if known is not None and value and part not in known:
            hint = " Put it into a subquery, or a temporary view." if part == "with_" else ""
            what = f"{tree.key.removesuffix('table')} ... {part.strip('_')}".upper()
            raise InvalidOperationError(f"{what} is not supported.{hint}")


def _require_names(tree: exp.Expr) -> None:
    """Refuse an unknown word that sqlglot takes for an alias, because it stands where an alias may."""
    for node in tree.find_all(exp.TableAlias, exp.Alias):
        name = node.this if isinstance(node, exp.TableAlias) else node.args["alias"]
        if name and not isinstance(name, exp.Identifier):
            raise InvalidOperationError(f"This statement cannot be understood: {name.sql(DIALECT)} is no name.")


def _statement(tree: exp.Expr) -> Statement:
    _require_understood(tree)
    _require_names(tree)
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
    keys = spec.expressions if spec else []
    if len(tree.expressions) != 1 or not all(isinstance(key, exp.EQ) for key in keys):
        raise InvalidOperationError("TRUNCATE takes one table, or its partitions with given values: PARTITION (k = v).")
    return Truncate(
        table_ref(tree.expressions[0]), {key.this.name.lower(): key.expression.sql(DIALECT) for key in keys}
    )


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
    return Insert(
        table_ref(target),
        query,
        columns,
        partition,
        overwrite=bool(tree.args.get("overwrite")),
        by_name=bool(tree.args.get("by_name")),
    )


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
    names = [item.alias_or_name for item in (source, *(join.this for join in joins), *laterals)]
    if not all(names) or len({name.lower() for name in names}) < len(names):
        raise InvalidOperationError("Each table and subquery that FROM joins for several INSERTs needs its own name.")
    query = _of_structs(source, names)
    query.set("with_", with_.copy() if with_ else None)
    return MultiInsert(query, "source", inserts, tuple(names))


def _of_structs(source: exp.Expr, names: Sequence[str]) -> exp.Select:
    """What FROM joins, as rows with one struct for each table: so columns keep the names that they are known by."""
    structs = (exp.alias_(exp.Struct(expressions=[exp.column(exp.Star(), table=name)]), name) for name in names)
    return exp.select(*structs).from_(source.copy())


def _update(tree: exp.Update) -> Update:
    if tree.args.get("from_"):
        raise InvalidOperationError("UPDATE ... FROM is not Hive's: write it as MERGE INTO ... USING ... .")
    return Update(table_ref(tree.this), tree.this.alias_or_name, _assignments(tree.expressions), _where(tree))


def _delete(tree: exp.Delete) -> Delete:
    return Delete(table_ref(tree.this), tree.this.alias_or_name, _where(tree))


def _where(tree: exp.Expr) -> exp.Expr | None:
    where = tree.args.get("where")
    return where.this if where else None


def _assignments(expressions: list[exp.Expr]) -> dict[str, exp.Expr]:
    """SET a = x, b = y; empty for SET *."""
    result: dict[str, exp.Expr] = {}
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
            return MergeBranch(matched, by_source, condition, "insert", *_inserted(then))
        case _ if then.name.upper() == "DELETE":
            return MergeBranch(matched, by_source, condition, "delete", {})
    raise InvalidOperationError(f"MERGE cannot do {then.sql(DIALECT)}.")


def _inserted(then: exp.Insert) -> tuple[dict[str, exp.Expr], tuple[exp.Expr, ...]]:
    """The values by column; in order, where no columns are named, as Hive has it; neither for ``*``."""
    if isinstance(then.this, exp.Star) or (then.this is None and isinstance(then.expression, exp.Star)):
        return {}, ()
    if then.expression is None:
        raise InvalidOperationError("WHEN NOT MATCHED THEN INSERT needs VALUES (...) or *.")
    values = then.expression.expressions
    if then.this is None:
        return {}, tuple(values)
    columns = [column.name.lower() for column in then.this.expressions]
    if len(columns) != len(values):
        raise InvalidOperationError(f"INSERT names {len(columns)} columns and gives {len(values)} values.")
    return dict(zip(columns, values, strict=True)), ()


@dataclass
class _Made:
    """What stands behind the columns of a CREATE TABLE."""

    location: str | None = None
    comment: str | None = None
    stored_as: str | None = None
    serde: str | None = None
    serde_parameters: dict[str, str] = field(default_factory=dict)
    classes: tuple[str, str] | None = None
    partition: tuple[tuple[str, str, str | None], ...] = ()
    bucket_columns: tuple[str, ...] = ()
    bucket_count: int = 0
    order: tuple[tuple[str, bool], ...] = ()

    def take(self, node: exp.Expr) -> None:
        match node:
            case exp.LocationProperty():
                self.location = node.this.name
            case exp.SchemaCommentProperty():
                self.comment = node.this.name
            case exp.PartitionedByProperty():
                self.partition = column_definitions(node.this.expressions)
            case exp.ClusteredByProperty():
                self.bucket_columns = tuple(column.name.lower() for column in node.expressions)
                self.bucket_count = int(node.args["buckets"].name)
                self.order = tuple(
                    (column.name.lower(), not column.args.get("desc")) for column in node.args.get("sorted_by") or ()
                )
            case exp.FileFormatProperty(this=exp.InputOutputFormat() as classes):
                self.classes = classes.args["input_format"].name, classes.args["output_format"].name
                self.stored_as = _FORMATS.get(self.classes[0].rpartition(".")[2], "inputformat")
            case exp.FileFormatProperty():
                self.stored_as = node.name.lower()
            case exp.RowFormatDelimitedProperty():
                self.serde_parameters = _delimiters(node)
            case exp.RowFormatSerdeProperty():
                properties = node.args.get("serde_properties")
                self.serde = node.this.name
                self.serde_parameters = {
                    item.this.name: item.args["value"].name for item in (properties.expressions if properties else ())
                }
            case exp.StorageHandlerProperty():
                raise InvalidOperationError("What is STORED BY another system cannot be transactional here.")

    @property
    def file_format(self) -> str:
        """What STORED AS says; without it ORC, or text where a row format is given, as in Hive."""
        return self.stored_as or ("textfile" if self.serde or self.serde_parameters else "orc")


_FORMATS = {"OrcInputFormat": "orc", "MapredParquetInputFormat": "parquet"}
_NEVER_TRANSACTIONAL = {exp.ExternalProperty: "EXTERNAL", exp.TemporaryProperty: "TEMPORARY"}
_DELIMITERS = {
    "fields": "field.delim",
    "escaped": "escape.delim",
    "collection_items": "colelction.delim",
    "map_keys": "mapkey.delim",
    "lines": "line.delim",
    "null": "serialization.null.format",
}
"""ROW FORMAT DELIMITED: sqlglot's words for its parts, and Hive's."""


def _delimiters(node: exp.Expr) -> dict[str, str]:
    delimiters = {_DELIMITERS[part]: value.name for part, value in node.args.items() if part in _DELIMITERS and value}
    if delimiters.get("line.delim", "\n") != "\n":
        raise InvalidOperationError("LINES TERMINATED BY takes '\\n' only, as in Hive.")
    if "field.delim" in delimiters:
        delimiters["serialization.format"] = delimiters["field.delim"]
    if "colelction.delim" in delimiters:  # as Hive has spelled it since version 3
        delimiters["collection.delim"] = delimiters["colelction.delim"]
    return delimiters


def _create(
    tree: exp.Create, words: list[frozenset[str]], defaults: Mapping[str, str]
) -> CreateTable | CreateLike | PassThrough:
    properties = tree.args.get("properties")
    nodes = properties.expressions if properties else []
    named = {
        **defaults,
        **{node.this.name.lower(): node.args["value"].name for node in nodes if type(node) is exp.Property},
    }
    never = [kind for node in nodes if (kind := _NEVER_TRANSACTIONAL.get(type(node)))]
    source = next((node.this for node in nodes if isinstance(node, exp.LikeProperty)), None)
    if source is not None and not never:
        location = next((node.this.name for node in nodes if isinstance(node, exp.LocationProperty)), None)
        return CreateLike(table_ref(tree.this), table_ref(source), bool(tree.args.get("exists")), location, named)
    if tree.kind != "TABLE" or named.get("transactional", "").lower() != "true":
        return PassThrough(tree)
    if never:
        raise InvalidOperationError(f"{never[0]} tables cannot be transactional: leave the word out, or the property.")
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
        columns = column_definitions([node for node in tree.this.expressions if isinstance(node, exp.ColumnDef)])
        constraints = declarations(tree.this, words)
    return CreateTable(
        table_ref(tree.this),
        columns,
        made.partition,
        made.bucket_columns,
        made.bucket_count,
        named,
        made.location,
        made.comment,
        if_not_exists=bool(tree.args.get("exists")),
        query=tree.expression,
        file_format=made.file_format,
        constraints=constraints,
        order=made.order,
        serde=made.serde,
        serde_parameters=made.serde_parameters,
        classes=made.classes,
    )
