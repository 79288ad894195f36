"""Encoder of partitions for a client: bytes kept by PostgreSQL, ended by parts that many share (ADR 59)."""

from collections.abc import Mapping
from dataclasses import dataclass

from thrift.protocol import fastbinary

from metastore.catalog.model import Json
from metastore.catalog.store.partition_wires import Piece
from metastore.ids import TableName
from metastore.thrift_gen.hive_metastore import ttypes
from metastore.thrift_server.convert.structs import struct_from_json

_MOST_KNOWN = 1000


@dataclass
class PartitionEncoder:
    """Encoder of a table's partitions.

    The shared end of their bytes is encoded once for each digest of a descriptor.
    """

    table: TableName
    columns: bool = True
    """True if descriptors keep their columns."""

    def __post_init__(self) -> None:
        names = ttypes.Partition(
            dbName=self.table.db, tableName=self.table.table, catName=self.table.catalog, writeId=None
        )
        self._names: bytes = fastbinary.encode_binary(names, [ttypes.Partition, ttypes.Partition.thrift_spec])
        self._known: dict[str, bytes] = {"": self._names}

    def _learn(self, descriptors: Mapping[str, Json]) -> None:
        """Encode the new descriptors."""
        if len(self._known) > _MOST_KNOWN:
            self._known = {"": self._names}
        for digest in descriptors.keys() - self._known.keys():
            sd = struct_from_json(ttypes.StorageDescriptor, descriptors[digest])
            sd.location = None  # Each partition has its own location.
            if not self.columns:
                sd.cols = None
            encoded: bytes = fastbinary.encode_binary(
                sd, [ttypes.StorageDescriptor, ttypes.StorageDescriptor.thrift_spec]
            )
            self._known[digest] = encoded + self._names

    def ended(self, piece: Piece) -> bytes:
        """Return the whole partitions of a piece, one after the other."""
        self._learn(piece.descriptors)
        known, wires, at = self._known, memoryview(piece.wires), 0
        parts: list[bytes | memoryview] = []
        for length, digest in zip(piece.lengths, piece.digests, strict=True):
            parts += wires[at : at + length], known[digest]
            at += length
        return b"".join(parts)
