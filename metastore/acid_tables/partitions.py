"""Partitions of a table: their values, keys, names and locations."""

import json
from collections.abc import Sequence
from typing import NamedTuple

from metastore.acid_tables.table import AcidTable, FileFormat
from metastore.partition_names import make_name


class PartitionPlace(NamedTuple):
    """A partition: its name, its values (None for the default partition) and its location.

    ``stored_as``: the format of its files; None: the table's.
    """

    name: str
    values: tuple[str | None, ...]
    location: str
    stored_as: FileFormat | None = None


def partition_key(values: Sequence[str | None]) -> str:
    """Return the key of a partition: the JSON text of its values."""
    return json.dumps(list(values), ensure_ascii=False, separators=(",", ":"))


def partition_values(key: str) -> list[str | None]:
    """Parse the partition values from a key."""
    values: list[str | None] = json.loads(key)
    return values


def partition_name(table: AcidTable, values: Sequence[str | None]) -> str:
    """Return the partition's name; NULL and "" are the default partition."""
    return make_name(table.partition_names, values)
