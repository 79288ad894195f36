"""The SELECTs behind UPDATE, DELETE and MERGE: over a view of the target with ROW__IDs, which rows change, and how.

Rules kept here. Assigned values are cast to the column's type, so that a value that does not fit is Spark's error and
not a wrong file. Partition columns and bucketing columns cannot be assigned (Hive refuses them: the row would have to
move). The first WHEN branch that applies to a row is the one that counts. A MERGE with a small source does not shuffle
the target: Spark cannot broadcast the side of a join that is kept whole (the source, where rows of it may be inserted),
so the rows that it matches are chosen first, by a join that can. Pure.
"""

from collections.abc import Mapping, Sequence

from sqlglot import exp

from metastore.acid_tables.table import OURS, AcidTable
from metastore.errors import InvalidOperationError
from metastore.spark.sql.dialect import DIALECT
from metastore.spark.sql.statements import Delete, Merge, MergeBranch, Update
from metastore.spark.tables.row_id import ROW_ID

ACTION = f"{OURS}action"
UPDATE, DELETE, INSERT = "update", "delete", "insert"
_MATCH = f"{OURS}matched"


def update_select(statement: Update, table: AcidTable, view: str) -> exp.Expr:
    """Rows that an UPDATE changes: ACTION, ROW__ID, the new values of all columns, the partition keys."""
    require_assignable(statement.assignments, table)
    columns = [
        _named(_new_value(statement.assignments, statement.alias, name, kind), name) for name, kind in _columns(table)
    ]
    action = _named(exp.Literal.string(UPDATE), ACTION)
    return _select_target(
        statement.alias,
        view,
        [action, *_row_id(statement.alias), *columns, *_keys(table, statement.alias)],
        statement.where,
    )


def delete_select(statement: Delete, table: AcidTable, view: str) -> exp.Expr:
    """Rows that a DELETE removes: ROW__ID and the partition keys."""
    return _select_target(
        statement.alias, view, [*_row_id(statement.alias), *_keys(table, statement.alias)], statement.where
    )


def merge_source(statement: Merge) -> exp.Expr:
    """The rows of a MERGE's source."""
    source = statement.source.copy()
    if isinstance(source, exp.Subquery):
        source.set("alias", exp.TableAlias(this=exp.to_identifier(statement.source_alias)))
    return exp.select("*").from_(source)


def merge_select(
    statement: Merge, table: AcidTable, view: str, source_view: str, source_columns: Sequence[str], *, is_small: bool
) -> exp.Expr:
    """What a MERGE does to each pair of rows: ACTION, ROW__ID, the new values and the partition keys.

    Only the rows that some branch applies to are in it. ``is_small``: the source's keys can be broadcast.
    """
    for branch in statement.branches:
        _require_branch(branch, table)
    target, source = statement.alias, statement.source_alias
    matched = exp.column(ROW_ID[2], table=target).is_(exp.null()).not_()
    has_source = exp.column(_MATCH, table=source).is_(exp.null()).not_()
    conditions = [_branch_condition(branch, matched, has_source) for branch in statement.branches]
    values = [_branch_values(branch, table, statement, source_columns) for branch in statement.branches]
    chosen = [_named(_case(conditions, [exp.Literal.string(branch.action) for branch in statement.branches]), ACTION)]
    for name, kind in _columns(table):
        branches = [value.get(name, exp.null()) for value in values]
        chosen.append(_named(exp.cast(_case(conditions, branches), kind, dialect=DIALECT), name))
    for key in table.partition_keys:
        old = exp.column(key.name, table=target)
        branches = [
            value.get(key.name, exp.null()) if branch.action == INSERT else old
            for branch, value in zip(statement.branches, values, strict=True)
        ]
        chosen.append(_named(exp.cast(_case(conditions, branches), key.sql_type, dialect=DIALECT), key.name))
    side = _join_side(statement.branches)
    marked = exp.select("*", _named(exp.true(), _MATCH)).from_(exp.table_(source_view))
    is_chosen_first = is_small and side in ("inner", "right") and _has_equality(statement)
    rows = _matched(statement, view, source_view) if is_chosen_first else _target(target, view)
    joined = (
        exp.select(*_row_id(target), *chosen)
        .from_(rows)
        .join(marked.subquery(source), on=statement.on.copy(), join_type=side)
    )
    _drop_databases(joined, statement)
    return exp.select("*").from_(joined.subquery("__changes")).where(exp.column(ACTION).is_(exp.null()).not_())


def kept_columns(statement: Merge, table: AcidTable, source_columns: Sequence[str]) -> set[str]:
    """The columns that some UPDATE branch leaves as they are."""
    names = {column.name for column in table.columns}
    offered = {name.lower() for name in source_columns} - set(table.bucket_columns)
    return {
        name
        for branch in statement.branches
        if branch.action == UPDATE
        for name in names - (set(branch.values) or offered)
    }


def require_assignable(assigned: Mapping[str, object], table: AcidTable) -> None:
    """Raise InvalidOperationError for a column that does not exist or must not be assigned."""
    columns = {column.name for column in table.columns}
    for name in assigned:
        if name in table.partition_names:
            raise InvalidOperationError(
                f"Partition column {name} of {table.name} cannot be updated: delete the row "
                "and insert it into the other partition."
            )
        if name in table.bucket_columns:
            raise InvalidOperationError(
                f"Bucketing column {name} of {table.name} cannot be updated: delete the row and insert the new one."
            )
        if name not in columns:
            raise InvalidOperationError(f"{table.name} has no column {name}. It has: {', '.join(sorted(columns))}.")


def _require_branch(branch: MergeBranch, table: AcidTable) -> None:
    if branch.action == INSERT:
        if branch.matched or branch.by_source:
            raise InvalidOperationError("INSERT belongs under WHEN NOT MATCHED.")
        known = {column.name for column in (*table.columns, *table.partition_keys)}
        if unknown := [name for name in branch.values if name not in known]:
            raise InvalidOperationError(f"{table.name} has no column {unknown[0]}.")
    elif not branch.matched and not branch.by_source:
        raise InvalidOperationError(f"{branch.action.upper()} belongs under WHEN MATCHED.")
    else:
        require_assignable(branch.values, table)


def _branch_condition(branch: MergeBranch, matched: exp.Expr, has_source: exp.Expr) -> exp.Expr:
    if branch.matched:
        condition = exp.and_(matched.copy(), has_source.copy())
    else:
        condition = exp.not_((has_source if branch.by_source else matched).copy())
    return exp.and_(condition, branch.condition.copy()) if branch.condition is not None else condition


def _branch_values(
    branch: MergeBranch, table: AcidTable, statement: Merge, source_columns: Sequence[str]
) -> dict[str, exp.Expr]:
    """The value of every column that the branch sets; an UPDATE keeps the others, an INSERT leaves them NULL."""
    target, source = statement.alias, statement.source_alias
    offered = {name.lower() for name in source_columns}
    if branch.action == DELETE:
        return {}
    if branch.action == INSERT:
        if branch.values:
            return dict(branch.values)
        names = [column.name for column in (*table.columns, *table.partition_keys)]
        if missing := [name for name in names if name not in offered]:
            raise InvalidOperationError(f"INSERT *: the source has no column {missing[0]}.")
        return {name: exp.column(name, table=source) for name in names}
    new = branch.values or {
        column.name: exp.column(column.name, table=source)
        for column in table.columns
        if column.name in offered and column.name not in table.bucket_columns
    }
    return {column.name: new.get(column.name, exp.column(column.name, table=target)) for column in table.columns}


def _join_side(branches: Sequence[MergeBranch]) -> str:
    """The smallest join from target to source that shows every row that some branch may want."""
    not_matched = any(not branch.matched and not branch.by_source for branch in branches)
    by_source = any(branch.by_source for branch in branches)
    return {(False, False): "inner", (True, False): "right", (False, True): "left", (True, True): "full"}[
        not_matched, by_source
    ]


def _matched(statement: Merge, view: str, source_view: str) -> exp.Subquery:
    """The target's rows that some row of the source matches."""
    target, source = statement.alias, statement.source_alias
    matched = exp.select(exp.Column(this=exp.Star(), table=exp.to_identifier(target))).from_(_target(target, view))
    matched = matched.join(_target(source, source_view), on=statement.on.copy(), join_type="left semi")
    broadcast = exp.Anonymous(this="BROADCAST", expressions=[exp.to_identifier(source)])
    matched.set("hint", exp.Hint(expressions=[broadcast]))
    return matched.subquery(target)


def _sides(statement: Merge) -> set[str]:
    return {statement.alias.lower(), statement.source_alias.lower()}


def _drop_databases(tree: exp.Expr, statement: Merge) -> None:
    """Both sides are views, so a column is qualified with their names alone: ``t.c``, where ``db.t.c`` may be said."""
    for column in tree.find_all(exp.Column):
        if column.db and column.db.lower() not in _sides(statement) and column.table.lower() in _sides(statement):
            column.set("db", None)


def _has_equality(statement: Merge) -> bool:
    """Whether the ON condition lets Spark look rows up, and is nothing but a condition on two rows."""
    on, sides = statement.on.unnest(), _sides(statement)
    parts = [part.unnest() for part in on.flatten()] if isinstance(on, exp.And) else [on]
    return on.find(exp.Query) is None and any(
        {_table_of(part.left), _table_of(part.right)} == sides for part in parts if isinstance(part, exp.EQ)
    )


def _table_of(expression: exp.Expr) -> str | None:
    """The one table that an expression is about; None where it is not said, or where there are several."""
    names = {column.table.lower() for column in expression.find_all(exp.Column)}
    return names.pop() if len(names) == 1 else None


def _select_target(alias: str, view: str, columns: Sequence[exp.Expr], where: exp.Expr | None) -> exp.Expr:
    select = exp.select(*columns).from_(_target(alias, view))
    return select.where(where.copy()) if where is not None else select


def _target(alias: str, view: str) -> exp.Table:
    return exp.Table(this=exp.to_identifier(view), alias=exp.TableAlias(this=exp.to_identifier(alias)))


def _columns(table: AcidTable) -> list[tuple[str, str]]:
    return [(column.name, column.sql_type) for column in table.columns]


def _new_value(assignments: Mapping[str, exp.Expr], alias: str, name: str, kind: str) -> exp.Expr:
    if name in assignments:
        return exp.cast(assignments[name].copy(), kind, dialect=DIALECT)
    return exp.column(name, table=alias, quoted=True)


def _case(conditions: Sequence[exp.Expr], values: Sequence[exp.Expr]) -> exp.Expr:
    case = exp.Case()
    for condition, value in zip(conditions, values, strict=True):
        case = case.when(condition.copy(), value.copy())
    return case


def _row_id(alias: str) -> list[exp.Expr]:
    return [exp.column(name, table=alias) for name in ROW_ID]


def _keys(table: AcidTable, alias: str) -> list[exp.Expr]:
    return [exp.column(name, table=alias, quoted=True) for name in table.partition_names]


def _named(value: exp.Expr, name: str) -> exp.Expr:
    return exp.alias_(value, name, quoted=True)
