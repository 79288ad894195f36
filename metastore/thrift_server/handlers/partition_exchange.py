"""Exchange of partitions between tables."""

from metastore.catalog.rules.partitions import Partition
from metastore.catalog.service.partition_exchange import PartitionExchange
from metastore.thrift_gen.hive_metastore import ttypes
from metastore.thrift_server.convert.partitions import encode_partitions, table_of
from metastore.thrift_server.dispatch.call import Call


class PartitionExchangeHandlers:
    """The calls exchange_partition and exchange_partitions."""

    def __init__(self, exchange: PartitionExchange) -> None:
        """Prepare the handlers. ``exchange``: does the work."""
        self._exchange = exchange

    def exchange_partition(
        self,
        call: Call,
        partitionSpecs: dict[str, str] | None,
        source_db: str,
        source_table_name: str,
        dest_db: str,
        dest_table_name: str,
    ) -> ttypes.Partition:
        """Move partitions; the answer is empty (as Hive's)."""
        self.exchange_partitions(call, partitionSpecs, source_db, source_table_name, dest_db, dest_table_name)
        return ttypes.Partition(createTime=0, lastAccessTime=0, writeId=None)

    def exchange_partitions(
        self,
        call: Call,
        partitionSpecs: dict[str, str] | None,
        source_db: str,
        source_table_name: str,
        dest_db: str,
        dest_table_name: str,
    ) -> list[ttypes.Partition]:
        """Move partitions; return those that were moved, as they are in the target."""
        source, target = table_of(source_db, source_table_name), table_of(dest_db, dest_table_name)
        moved: list[Partition] = self._exchange.exchange_partitions(partitionSpecs or {}, source, target)
        call.log(source=str(source), target=str(target), moved=len(moved))
        return encode_partitions(target, moved)
