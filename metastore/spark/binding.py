"""Point a query's table names at temporary views over snapshots. Pure but for the ``resolve`` that it is given."""

from collections.abc import Callable

from sqlglot import exp

from metastore.spark.statements import DIALECT, TableRef

Resolve = Callable[[TableRef], str | None]


def bound_sql(tree: exp.Expression, resolve: Resolve) -> str:
    """The query's text with every table that ``resolve`` gives a view for read from that view.

    A view takes the alias of the table, or its bare name, so that columns qualified with either still resolve; a
    database in front of a column (``db.t.c``) is dropped. Names of common table expressions are left alone.
    """
    tree = tree.copy()
    local = {cte.alias.lower() for cte in tree.find_all(exp.CTE)}
    touched = False
    for table in list(tree.find_all(exp.Table)):
        if not table.name or table.catalog or (not table.db and table.name.lower() in local):
            continue
        view = resolve(TableRef(table.db.lower() or None, table.name.lower()))
        if view is None:
            continue
        touched = True
        if not table.alias:
            table.set("alias", exp.TableAlias(this=exp.to_identifier(table.name)))
        table.set("this", exp.to_identifier(view))
        table.set("db", None)
    if touched:
        for column in tree.find_all(exp.Column):
            column.set("db", None)
    return tree.sql(DIALECT)
