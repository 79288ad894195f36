"""Columns of a table as writers without Spark see them."""

from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from metastore.acid.types import HiveType
from metastore.acid_tables.arrow_types import arrow_type


@dataclass(frozen=True)
class Column:
    """A column or partition key."""

    name: str
    type: HiveType
    default: str | None = None
    """SQL of the value that it has where a record leaves it out; None is NULL."""

    @cached_property
    def arrow(self) -> pa.DataType:
        """The type that its values have in Arrow and in the file."""
        return arrow_type(self.type, self.name)
