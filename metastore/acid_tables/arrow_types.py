"""The Arrow types for Hive's types."""

import pyarrow as pa

from metastore.acid.types import HiveType
from metastore.errors import InvalidOperationError

_ARROW = {
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "char": pa.string(),
    "varchar": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us"),
}


def partition_scalar(text: str, field: pa.Field) -> pa.Scalar:
    """Parse a partition's value. Raises: InvalidOperationError for a text that is not of its type."""
    try:
        return pa.scalar(text).cast(field.type)
    except pa.ArrowException as error:
        raise InvalidOperationError(f"The partition {field.name}={text} cannot be read as {field.type}.") from error


def arrow_type(kind: HiveType, column: str) -> pa.DataType:
    """Return the Arrow type that holds all values of a Hive type.

    Raises: InvalidOperationError if Arrow has none.
    """
    match kind.kind:
        case "decimal":
            return pa.decimal128(*kind.precision_and_scale)
        case "array":
            return pa.list_(arrow_type(kind.children[0], column))
        case "map":
            return pa.map_(*(arrow_type(child, column) for child in kind.children))
        case "struct":
            return pa.struct(
                [
                    pa.field(name.lower(), arrow_type(child, column))
                    for name, child in zip(kind.names, kind.children, strict=True)
                ]
            )
        case name if name in _ARROW:
            return _ARROW[name]
        case name:
            raise InvalidOperationError(f"Column {column} is a {name}, which Arrow has no type for: use Hive.")
