"""Fields of structs within a column's type, by a path as Spark gives it: ``element``, ``key`` and ``value`` are steps.

Rule: files stay as they are, and readers find fields by name. So a struct may get fields at its end, which are NULL in
existing rows; all else within a nested type stays. Pure.
"""

from collections.abc import Callable, Sequence

from metastore.acid.types import HiveType
from metastore.errors import InvalidOperationError

_STEPS = {"array": ("element",), "map": ("key", "value")}


def with_field(kind: HiveType, path: Sequence[str], new: HiveType) -> HiveType:
    """Return the type with a field at the end of the struct that holds it. Raises: InvalidOperationError."""

    def added(struct: HiveType) -> HiveType:
        if struct.kind != "struct":
            raise InvalidOperationError(f"{struct} has no fields: {path[-1]} cannot be added to it.")
        if path[-1].lower() in _steps(struct):
            raise InvalidOperationError(f"{struct} has a field {path[-1].lower()} already.")
        return struct._replace(children=(*struct.children, new), names=(*struct.names, path[-1].lower()))

    return _changed(kind, path[:-1], added)


def retyped(kind: HiveType, path: Sequence[str], new: HiveType) -> HiveType:
    """Return the type with another type at the end of the path. Raises: InvalidOperationError."""
    return _changed(kind, path, lambda _: new)


def is_extended(old: HiveType, new: HiveType) -> bool:
    """Return True if ``new`` is ``old``, or has only additional fields at the ends of its structs."""
    if old == new:
        return True
    if old.kind != new.kind or not old.children or len(new.children) < len(old.children):
        return False
    steps, more = _steps(old), _steps(new)
    return steps == more[: len(steps)] and all(map(is_extended, old.children, new.children))


def _changed(kind: HiveType, path: Sequence[str], change: Callable[[HiveType], HiveType]) -> HiveType:
    if not path:
        return change(kind)
    steps = _steps(kind)
    if path[0].lower() not in steps:
        raise InvalidOperationError(f"{kind} has no {path[0]}. It has: {', '.join(steps) or 'no fields'}.")
    place = steps.index(path[0].lower())
    inner = _changed(kind.children[place], path[1:], change)
    return kind._replace(children=(*kind.children[:place], inner, *kind.children[place + 1 :]))


def _steps(kind: HiveType) -> tuple[str, ...]:
    """Return the names of a type's parts."""
    return _STEPS.get(kind.kind, tuple(name.lower() for name in kind.names))
