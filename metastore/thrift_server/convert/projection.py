"""Projection of a Thrift struct to the fields that a client asks for (GetProjectionsSpec)."""

from typing import Any

from metastore.errors import InvalidOperationError, MetaError

_WHOLE_ONLY = {"sd", "privileges"}
"""Fields of a partition that a projection cannot name; it names fields of ``sd``."""


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


def projected_partition(partition: Any, paths: list[str]) -> Any:
    """Return the partition with only the fields of a list: empty collections are absent, and numbers are there as 0.

    Raises: MetaError for a field that cannot be named.
    """
    unknown = _WHOLE_ONLY.intersection(paths)
    if unknown:
        raise MetaError(f"Invalid partition fields in the projection spec [{', '.join(sorted(unknown))}]")
    reduced = _without_empty(_reduced(partition, [path.split(".") for path in paths]))
    reduced.createTime, reduced.lastAccessTime = reduced.createTime or 0, reduced.lastAccessTime or 0
    sd = reduced.sd
    if sd is not None:
        sd.compressed, sd.numBuckets = bool(sd.compressed), sd.numBuckets or 0
        if sd.skewedInfo is not None and not sd.skewedInfo.skewedColNames:
            sd.skewedInfo = None
    return reduced


def _without_empty(struct: Any) -> Any:
    kept = {}
    for name in struct.__slots__:
        value = getattr(struct, name)
        kept[name] = _without_empty(value) if hasattr(value, "thrift_spec") else None if value in ([], {}) else value
    return type(struct)(**kept)


def _reduced(struct: Any, paths: list[list[str]]) -> Any:
    kept: dict[str, Any] = {}
    for name in {path[0] for path in paths}:
        if name not in struct.__slots__:
            raise MetaError(f"{type(struct).__name__} has no field {name}")
        value = getattr(struct, name)
        deeper = [path[1:] for path in paths if path[0] == name and len(path) > 1]
        whole = any(path == [name] for path in paths)
        kept[name] = value if whole else _reduced_value(value, deeper)
    return type(struct)(**kept)


def _reduced_value(value: Any, paths: list[list[str]]) -> Any:
    if isinstance(value, list):
        return [_reduced_value(element, paths) for element in value]
    return _reduced(value, paths) if hasattr(value, "thrift_spec") else value
