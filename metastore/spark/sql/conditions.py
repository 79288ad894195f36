"""The conditions that a row of a table must meet to matter to a statement at all. Pure.

Rule: only what the statement's answer cannot change by, were the table's other rows not there. A condition behind an
outer join sees the NULLs of missing rows: of such conditions only those count that NULL does not meet. What stands
elsewhere (a condition on a subquery, HAVING, the ON of a right or full join) is not looked for.
"""

from collections.abc import Iterator
from typing import NamedTuple

from sqlglot import exp

_PLAIN_TABLE = {"this", "db", "alias", "version"}
_ONE_SIDED = {"SEMI", "ANTI"}


class Conditions(NamedTuple):
    """Conditions that all hold for each row of a table that matters."""

    trees: tuple[exp.Expr, ...]
    names: frozenset[str]
    """What may stand in front of the table's columns; "": columns may stand alone."""
    may_be_missing: bool = False
    """Whether they also see NULLs in the place of the table's rows."""


def conditions_of(condition: exp.Expr | None, *names: str) -> Conditions:
    """The parts of a condition that AND joins; ``names``: what may stand in front of the table's columns."""
    return Conditions(
        () if condition is None else tuple(conjuncts(condition)), frozenset({"", *(name.lower() for name in names)})
    )


def conditions_on(table: exp.Table) -> Conditions | None:
    """Conditions on a table that stands in the FROM of a SELECT; None where nothing is known of it."""
    place = table.parent
    select = place.parent if isinstance(place, exp.From | exp.Join) else None
    if not isinstance(select, exp.Select) or any(
        value and part not in _PLAIN_TABLE for part, value in table.args.items()
    ):
        return None
    joins: list[exp.Join] = select.args.get("joins") or []
    at = next((number for number, join in enumerate(joins) if join is place), -1)
    names = [join.this.alias_or_name.lower() for join in (select.args["from_"], *joins)]
    name = table.alias_or_name.lower()
    if (isinstance(place, exp.Join) and at < 0) or names.count(name) > 1 or table.alias_column_names:
        return None
    trees = list(_asked_while_joining(joins, at))
    if (where := select.args.get("where")) and not _is_one_sided(place):
        trees += conjuncts(where.this)
    is_merged = any(join.args.get("using") or join.method for join in joins)  # USING, NATURAL: one column of several
    return Conditions(tuple(trees), frozenset({name} if is_merged else {name, ""}), bool(joins))


def conjuncts(tree: exp.Expr) -> Iterator[exp.Expr]:
    """The parts of a condition that all have to hold."""
    tree = tree.unnest()
    if isinstance(tree, exp.And):
        yield from conjuncts(tree.this)
        yield from conjuncts(tree.expression)
    else:
        yield tree


def _asked_while_joining(joins: list[exp.Join], at: int) -> Iterator[exp.Expr]:
    """Of the table that stands in the join number ``at``, or in FROM (-1): what its own and later joins ask."""
    for number, join in enumerate(joins[max(at, 0) :], max(at, 0)):
        is_inner = (join.method, join.side) == ("", "") and join.kind in {"", "INNER", "CROSS"}
        is_left = _is_one_sided(join) or (join.side == "LEFT" and join.kind in {"", "OUTER"})
        if (on := join.args.get("on")) and (is_inner or (is_left and number == at)):
            yield from conjuncts(on)
        if number == at and _is_one_sided(join):
            return  # nothing behind it knows the table


def _is_one_sided(place: exp.Expr | None) -> bool:
    return isinstance(place, exp.Join) and place.kind in _ONE_SIDED
