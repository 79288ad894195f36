"""Locations of the partitions of a table; new partitions are created.

Rule: a partition is registered before rows are written into it, as Hive's streaming does: a partition that stays empty
because its transaction is aborted does no harm.
"""

import copy
from threading import Lock
from typing import NamedTuple

from metastore.client import DomainClient
from metastore.errors import NoSuchObjectError
from metastore.partition_names import DEFAULT_PARTITION, make_name
from metastore.streaming.routing import PartitionValues
from metastore.streaming.table import StreamTable


class NamedLocation(NamedTuple):
    """A partition's name and location; of an unpartitioned table "" and the table's."""

    name: str
    location: str


class Partitions:
    """A cache of known partitions. It is thread-safe."""

    def __init__(self, client: DomainClient, table: StreamTable) -> None:
        self._client = client
        self._table = table
        self._known: dict[PartitionValues, NamedLocation] = (
            {} if table.partition_keys else {(): NamedLocation("", table.location)}
        )
        self._one_at_a_time = Lock()

    def place(self, values: PartitionValues) -> NamedLocation:
        """The partition with these values, created if need be."""
        place = self._known.get(values)
        if place is None:
            with self._one_at_a_time:
                place = self._known.get(values) or self._found_or_created(values)
                self._known[values] = place
        return place

    def name(self, values: PartitionValues) -> str:
        """Return the name of a partition."""
        return make_name([key.name for key in self._table.partition_keys], values)

    def _found_or_created(self, values: PartitionValues) -> NamedLocation:
        texts = [value or DEFAULT_PARTITION for value in values]
        db, table, types = self._table.name.db, self._table.name.table, self._client.types
        name = self.name(values)
        try:
            return NamedLocation(name, str(self._client.get_partition(db, table, texts).sd.location))
        except NoSuchObjectError:
            pass
        sd = copy.copy(self._client.get_table(db, table).sd)
        sd.location = f"{self._table.location}/{name}"
        partition = types.Partition(
            values=texts, dbName=db, tableName=table, sd=sd, parameters={}, createTime=0, lastAccessTime=0
        )
        self._client.add_partitions_req(
            types.AddPartitionsRequest(dbName=db, tblName=table, parts=[partition], ifNotExists=True, needResult=False)
        )
        return NamedLocation(name, str(self._client.get_partition(db, table, texts).sd.location))
