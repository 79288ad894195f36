"""Point a query's table names at temporary views over snapshots. Pure but for the ``resolve`` that it is given."""

from collections.abc import Callable

from sqlglot import exp
from sqlglot.errors import ErrorLevel, UnsupportedError

from metastore.errors import InvalidOperationError
from metastore.spark.sql.conditions import conditions_on
from metastore.spark.sql.dialect import DIALECT
from metastore.spark.sql.statements import TableRef
from metastore.spark.tables.row_id import ROW_ID_COLUMN

Resolve = Callable[[TableRef], str | None]


def bound_sql(tree: exp.Expr, resolve: Resolve) -> str:
    """The query's text with every table that ``resolve`` gives a view for read from that view.

    A view takes the alias of the table, or its bare name, so that columns qualified with either still resolve; a
    database in front of a column (``db.t.c``) is dropped. Names of common table expressions are left alone. AS OF goes
    to ``resolve``: its view is of the past already; and so does what the query asks of the table's rows.
    Raises: InvalidOperationError for what Spark's SQL cannot say.
    """
    tree = tree.copy()
    local = {cte.alias.lower() for cte in tree.find_all(exp.CTE)}
    touched = False
    resolved = []
    for table in list(tree.find_all(exp.Table)):
        if not table.name or table.catalog or (not table.db and table.name.lower() in local):
            continue
        view = resolve(
            TableRef(table.db.lower() or None, table.name.lower(), table.args.get("version"), conditions_on(table))
        )
        if view is None:
            continue
        table.set("version", None)
        touched = True
        resolved.append(table)
        if not table.alias:
            table.set("alias", exp.TableAlias(this=exp.to_identifier(table.name)))
        table.set("this", exp.to_identifier(view))
        table.set("db", None)
    if touched:
        for column in tree.find_all(exp.Column):
            if column.table.upper() != ROW_ID_COLUMN:  # t.ROW__ID.rowid has no database in front
                column.set("db", None)
    if names_row_id(tree):
        _hide_row_ids(resolved)
    try:
        return tree.sql(DIALECT, unsupported_level=ErrorLevel.RAISE)
    except UnsupportedError as error:  # what would be left out otherwise, as FOR UPDATE
        raise InvalidOperationError(f"This query cannot be handed to Spark: {error}") from error


def names_row_id(tree: exp.Expr) -> bool:
    """Whether a query asks for Hive's ROW__ID, so that its tables' views must have it."""
    return any(part.name.upper() == ROW_ID_COLUMN for column in tree.find_all(exp.Column) for part in column.parts)


def _hide_row_ids(tables: list[exp.Table]) -> None:
    """Let ``*`` mean what it means without ROW__ID, which a query gets only by its name."""
    hidden: dict[int, tuple[exp.Select, list[str]]] = {}
    for table in tables:
        select = table.find_ancestor(exp.Select)
        if select is not None:
            hidden.setdefault(id(select), (select, []))[1].append(table.alias)
    for select, aliases in hidden.values():
        for shown in select.expressions:
            star = shown.this if isinstance(shown, exp.Column) else shown
            if isinstance(star, exp.Star):
                of = shown.table if isinstance(shown, exp.Column) else ""
                names = [exp.column(ROW_ID_COLUMN, table=alias) for alias in aliases if not of or of == alias]
                star.set("except_", [*(star.args.get("except_") or []), *names])
