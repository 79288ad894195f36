"""Serialized conditions of get_partitions_by_expr and drop_partitions_req: two spellings of one predicate.

Hive sends its expression tree as Kryo bytes; clients of the standalone metastore send a filter string in UTF-8.
"""

from collections.abc import Sequence

from metastore.catalog.rules.kryo import is_kryo, read_expression
from metastore.catalog.rules.partition_filter import PartitionKey, bind, parse_filter
from metastore.catalog.rules.partition_predicate import Predicate
from metastore.errors import InvalidRequestError


def parse_expression(expr: bytes, keys: Sequence[PartitionKey], default: str) -> Predicate:
    """The predicate that the bytes stand for.  Raises: InvalidRequestError if they cannot be read."""
    if is_kryo(expr):
        return bind(read_expression(expr), keys, default)
    try:
        text = expr.decode()
    except UnicodeDecodeError as error:
        raise InvalidRequestError("The partition expression is neither a Hive expression nor a filter string") from error
    return parse_filter(text, keys, default)
