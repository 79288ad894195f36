"""What a statement reads and writes, and how: for its locks and its snapshots. Pure."""

from sqlglot import exp

from metastore.client.lock_plan import Kind
from metastore.spark.sql.statements import Delete, Insert, Merge, MultiInsert, Truncate, Update


def kinds_of(statement: Insert | Update | Delete | Merge | Truncate) -> list[Kind]:
    """How a statement uses its target, for the lock plan."""
    match statement:
        case Insert(overwrite=True) | Truncate():
            return [Kind.INSERT_OVERWRITE]
        case Insert():
            return [Kind.INSERT]
        case Update():
            return [Kind.UPDATE]
        case Delete():
            return [Kind.DELETE]
        case Merge(branches=branches):
            by_action = {"update": Kind.UPDATE, "delete": Kind.DELETE, "insert": Kind.MERGE_INSERT}
            return list(dict.fromkeys(by_action[branch.action] for branch in branches))


def queries_of(statement: Insert | MultiInsert | Update | Delete | Merge | Truncate) -> list[exp.Expr]:
    """The parts of a statement that may read other tables."""
    match statement:
        case MultiInsert(source=source, inserts=inserts):
            return [source, *(insert.query for insert in inserts)]
        case Insert(query=query):
            return [query]
        case Update(assignments=assignments, where=where):
            return [*assignments.values(), *([where] if where is not None else [])]
        case Delete(where=where):
            return [where] if where is not None else []
        case Merge(source=source, on=on, branches=branches):
            conditions = [branch.condition for branch in branches if branch.condition is not None]
            values = [value for branch in branches for value in (*branch.values.values(), *branch.in_order)]
            return [exp.select("*").from_(source.copy()), on, *conditions, *values]
        case Truncate():
            return []
