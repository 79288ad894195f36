"""Constraints of tables: which constraints may be added, their names, and their fate when columns change.

Source: CAT-K1, CAT-K2. Writers of rows enforce them; here they are only declared.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from metastore.catalog.model import ConstraintColumn, ConstraintKind, Table
from metastore.catalog.rules.expressions import refused_expression
from metastore.errors import InvalidObjectError, MetaError

_PREFIXES = {
    ConstraintKind.PRIMARY_KEY: "pk",
    ConstraintKind.FOREIGN_KEY: "fk",
    ConstraintKind.UNIQUE: "uk",
    ConstraintKind.NOT_NULL: "nn",
    ConstraintKind.DEFAULT: "dc",
    ConstraintKind.CHECK: "cc",
}
_KEYS = (ConstraintKind.PRIMARY_KEY, ConstraintKind.UNIQUE)
_OF_COLUMNS = (*_KEYS, ConstraintKind.FOREIGN_KEY, ConstraintKind.NOT_NULL)


def named(
    drafts: Iterable[ConstraintColumn], taken: Collection[str], table_id: int, now_ms: int
) -> list[ConstraintColumn]:
    """Return the constraints with the names under which they are stored.

    Columns of a key come one after the other, and only the first one's position is 1.
    Raises: MetaError for a name that the table has already.
    """
    done: list[ConstraintColumn] = []
    used, current = set(taken), ""
    for draft in drafts:
        continues = bool(done) and draft.position > 1 and draft.kind is done[-1].kind
        if draft.name:
            current = draft.name if continues and draft.name == current else _free(draft.name, used, draft)
        elif not continues:
            current = _generated(draft, used, table_id, now_ms)
        used.add(current)
        done.append(replace(draft, name=current))
    return done


def require_columns(table: Table, constraints: Iterable[ConstraintColumn]) -> None:
    """Raise InvalidObjectError for an unknown column, MetaError for none or for a refused expression."""
    known = {*(column["name"] for column in table.sd["cols"]), *table.partition_key_names}
    for constraint in constraints:
        if constraint.kind in _OF_COLUMNS and constraint.column is None:
            raise MetaError(f"{constraint.kind.upper()} constraint {constraint.name} of {table.name} names no column")
        if constraint.kind in _OF_COLUMNS and constraint.column not in known:
            raise InvalidObjectError(f"Parent column not found: {table.name} has no column {constraint.column}")
        if constraint.kind in (ConstraintKind.DEFAULT, ConstraintKind.CHECK) and constraint.value is None:
            raise InvalidObjectError(
                f"{constraint.kind.upper()} constraint {constraint.name} of {table.name} has no expression"
            )
        if constraint.value is not None and (refused := refused_expression(constraint.value)) is not None:
            raise MetaError(
                f"{constraint.kind.upper()} constraint {constraint.name} of {table.name} ({constraint.value}) is "
                f"refused: {refused}"
            )


def require_one_primary_key(
    table: Table, stored: Iterable[ConstraintColumn], added: Iterable[ConstraintColumn]
) -> None:
    """Raise MetaError for a second primary key."""
    before, new = (
        {constraint.name for constraint in constraints if constraint.kind is ConstraintKind.PRIMARY_KEY}
        for constraints in (stored, added)
    )
    if new and len(new) + len(before) > 1:
        raise MetaError(f"Primary key already exists for: {'.'.join(table.name)}")


def referenced_key(columns: Sequence[ConstraintColumn], parent_constraints: Iterable[ConstraintColumn]) -> str:
    """Return the name of the parent's primary or unique key that a foreign key refers to. Raises: MetaError."""
    keys: dict[str, list[str | None]] = {}
    for constraint in parent_constraints:
        if constraint.kind in _KEYS:
            keys.setdefault(constraint.name, []).append(constraint.column)
    if not keys:
        raise MetaError(
            "Trying to define foreign key but there are no primary keys or unique keys for referenced table"
        )
    wanted = [column.reference.column for column in columns if column.reference is not None]
    for name, members in keys.items():
        if members == wanted:
            return name
    raise MetaError(
        f'Foreign key references "{", ".join(wanted)}" but no corresponding primary key or unique key '
        f"exists. Possible keys: {[', '.join(map(str, members)) for members in keys.values()]}"
    )


def require_other_columns(columns: Sequence[ConstraintColumn]) -> None:
    """Raise MetaError for a foreign key that refers to the very columns that it is made of."""
    if all(
        column.reference is not None
        and (column.table, column.column) == (column.reference.table, column.reference.column)
        for column in columns
    ):
        raise MetaError(f"Foreign key of {columns[0].table} refers to its own columns")


def renamed_columns(old: Table, new: Table) -> dict[str, str | None]:
    """Map the old name of each renamed column to its new name, and of each removed column to None.

    A column counts as renamed if the number of columns is the same and its position has a new name.
    """
    before = [column["name"] for column in old.sd["cols"]]
    after = [column["name"] for column in new.sd["cols"]]
    same_count = len(before) == len(after)
    return {
        name: after[index] if same_count and after[index] not in before else None
        for index, name in enumerate(before)
        if name not in after
    }


def _free(name: str, used: Collection[str], draft: ConstraintColumn) -> str:
    if name in used:
        raise MetaError(f"Constraint name already exists: {'.'.join(draft.table)} has a constraint {name}")
    return name


def _generated(draft: ConstraintColumn, used: Collection[str], table_id: int, now_ms: int) -> str:
    counter = 0
    while (name := f"{_PREFIXES[draft.kind]}_{table_id}_{now_ms}_{counter}") in used:
        counter += 1
    return name
