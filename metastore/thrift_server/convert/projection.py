"""Projection of a Thrift struct to the fields that a client asks for (GetProjectionsSpec)."""

from typing import Any

from metastore.errors import InvalidOperationError, MetaError


def projected(struct: Any, spec: Any) -> Any:
    """Return the struct with only the fields of ``spec.fieldList`` (``sd.location`` style paths); all without a list.

    Raises: MetaError for an unknown field, InvalidOperationError for parameter patterns without fields.
    """
    if spec is None:
        return struct
    if not spec.fieldList:
        if spec.includeParamKeyPattern or spec.excludeParamKeyPattern:
            raise InvalidOperationError("Patterns for parameter keys need a list of fields")
        return struct
    return _reduced(struct, [path.split(".") for path in spec.fieldList])


def _reduced(struct: Any, paths: list[list[str]]) -> Any:
    kept: dict[str, Any] = {}
    for name in {path[0] for path in paths}:
        if name not in struct.__slots__:
            raise MetaError(f"{type(struct).__name__} has no field {name}")
        value = getattr(struct, name)
        deeper = [path[1:] for path in paths if path[0] == name and len(path) > 1]
        whole = any(path == [name] for path in paths)
        kept[name] = value if whole or not hasattr(value, "thrift_spec") else _reduced(value, deeper)
    return type(struct)(**kept)
