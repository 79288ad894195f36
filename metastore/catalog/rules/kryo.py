"""stub"""
from metastore.catalog.rules.partition_filter import Syntax
from metastore.errors import InvalidRequestError


def is_kryo(expr: bytes) -> bool:
    return expr[:1] == b"\x01"


def read_expression(expr: bytes) -> Syntax:
    raise InvalidRequestError("not read yet")
