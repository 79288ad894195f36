"""Conversions of partitions between Thrift and the catalog.

Structs of 4.x and the older positional arguments meet here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from thrift.protocol import fastbinary

from metastore.catalog.model import Json, Parameters, Table
from metastore.catalog.rules.like import like
from metastore.catalog.rules.partitions import Partition, PartitionDraft
from metastore.catalog.rules.tables import is_true
from metastore.errors import InvalidRequestError
from metastore.ids import TableName, table_name
from metastore.thrift_gen.hive_metastore import ttypes
from metastore.thrift_server.convert.structs import struct_from_json, struct_to_json


@dataclass(frozen=True)
class Shape:
    """The part of each partition that a client wants: 4.1 requests may leave columns and parameters out."""

    columns: bool = True
    include: str | None = None
    exclude: str | None = None

    def parameters(self, parameters: Parameters) -> Parameters:
        """Return the parameters whose key matches ``include`` and not ``exclude`` (SQL LIKE patterns)."""
        if not self.include and not self.exclude:
            return parameters
        return {
            key: value
            for key, value in parameters.items()
            if (not self.include or like(self.include).matches(key))
            and not (self.exclude and like(self.exclude).matches(key))
        }


WHOLE = Shape()


def shape_of(request: Any) -> Shape:
    """Return the shape that a 4.1 request asks for."""
    return Shape(
        not request.skipColumnSchemaForPartition, request.includeParamKeyPattern, request.excludeParamKeyPattern
    )


def table_of(db: str | None, table: str | None, catalog: str | None = None) -> TableName:
    """Return the table that the arguments name. Raises: InvalidRequestError for an absent name."""
    if db is None or table is None:
        raise InvalidRequestError(f"Database and table name must be given, not {db} and {table}")
    return table_name(db, table.strip(), catalog)


def table_of_partition(struct: ttypes.Partition, catalog: str | None = None) -> TableName:
    """Return the table that a partition names."""
    if struct is None:
        raise InvalidRequestError("Partition cannot be null")
    return table_of(struct.dbName, struct.tableName, struct.catName or catalog)


def draft_of(
    struct: ttypes.Partition, target: TableName | None = None, columns: list[ttypes.FieldSchema] | None = None
) -> PartitionDraft:
    """Decode a client's partition.

    ``target``: the catalog of a partition that names none. ``columns``: for a partition that is sent without columns.
    """
    return drafts_of([struct], target, columns)[0]


def drafts_of(
    structs: Iterable[ttypes.Partition],
    target: TableName | None = None,
    columns: list[ttypes.FieldSchema] | None = None,
) -> list[PartitionDraft]:
    """Decode several partitions as ``draft_of`` does.

    A descriptor equal to the descriptor before it, but for the location, is converted once.
    """
    before, sd, drafts = b"", None, []
    for struct in structs:
        name = table_of_partition(struct, target.catalog if target else None)
        encoded = b"" if struct.sd is None else _encoded_but_for_location(struct.sd)
        if encoded != before:
            before, sd = encoded, None if struct.sd is None else _sd_of(struct.sd, columns)
        drafts.append(_draft(name, struct, sd))
    return drafts


def _encoded_but_for_location(sd: ttypes.StorageDescriptor) -> bytes:
    """Encode a descriptor without its location: bytes are compared far more quickly than structs."""
    location, sd.location = sd.location, None
    try:
        encoded: bytes = fastbinary.encode_binary(sd, [ttypes.StorageDescriptor, ttypes.StorageDescriptor.thrift_spec])
    finally:
        sd.location = location
    return encoded


def _sd_of(struct: ttypes.StorageDescriptor, columns: list[ttypes.FieldSchema] | None = None) -> Json:
    sd = struct_to_json(struct)
    sd.pop("location", None)
    if columns and not sd.get("cols"):
        sd["cols"] = [struct_to_json(column) for column in columns]
    return sd


def _draft(name: TableName, struct: ttypes.Partition, sd: Json | None) -> PartitionDraft:
    return PartitionDraft(
        name,
        struct.values,
        sd,
        dict(struct.parameters or {}),
        None if struct.sd is None else struct.sd.location,
        struct.createTime or 0,
        struct.lastAccessTime or 0,
        -1 if struct.writeId is None else struct.writeId,
    )


def drafts_of_specs(specs: Sequence[ttypes.PartitionSpec]) -> tuple[TableName, list[PartitionDraft]]:
    """Decode a list of partition specifications, all of one table; return the table and the partitions."""
    name = table_of(specs[0].dbName, specs[0].tableName, specs[0].catName)
    drafts: list[PartitionDraft] = []
    for spec in specs:
        of_spec = table_of(spec.dbName, spec.tableName, spec.catName)
        if spec.partitionList is not None:
            drafts.extend(drafts_of(spec.partitionList.partitions or (), of_spec))
        elif spec.sharedSDPartitionSpec is not None:
            drafts.extend(_shared_drafts(of_spec, spec.sharedSDPartitionSpec))
        else:
            raise InvalidRequestError("A partition specification has neither a list nor a shared descriptor")
    return name, drafts


def _shared_drafts(name: TableName, spec: ttypes.PartitionSpecWithSharedSD) -> list[PartitionDraft]:
    if spec.sd is None or not spec.sd.location:
        raise InvalidRequestError("The shared storage descriptor of a partition specification has no location")
    sd = _sd_of(spec.sd)
    return [
        PartitionDraft(
            name,
            struct.values,
            sd,
            dict(struct.parameters or {}),
            f"{spec.sd.location}{_as_java_prints(struct.relativePath)}",
            struct.createTime or 0,
            struct.lastAccessTime or 0,
        )
        for struct in spec.partitions or ()
    ]


def _as_java_prints(text: str | None) -> str:
    """Format a text as Java's ``+`` does: null becomes "null"."""
    return "null" if text is None else text


def encode_partitions(name: TableName, partitions: Iterable[Partition], shape: Shape = WHOLE) -> list[ttypes.Partition]:
    """Encode partitions for the client. A shared descriptor is converted once."""
    converted: dict[int, ttypes.StorageDescriptor] = {}
    encoded = []
    for partition in partitions:
        sd = None
        if partition.sd is not None:
            shared = converted.get(id(partition.sd))
            if shared is None:
                shared = struct_from_json(ttypes.StorageDescriptor, partition.sd)
                converted[id(partition.sd)] = shared
            sd = ttypes.StorageDescriptor(
                shared.cols if shape.columns else None,
                partition.location,
                shared.inputFormat,
                shared.outputFormat,
                shared.compressed,
                shared.numBuckets,
                shared.serdeInfo,
                shared.bucketCols,
                shared.sortCols,
                shared.parameters,
                shared.skewedInfo,
                shared.storedAsSubDirectories,
            )
        encoded.append(
            ttypes.Partition(
                values=partition.values,
                dbName=name.db,
                tableName=name.table,
                createTime=partition.create_time,
                lastAccessTime=partition.last_access_time,
                sd=sd,
                parameters=shape.parameters(partition.parameters),
                catName=name.catalog,
                writeId=partition.write_id,
            )
        )
    return encoded


def encode_partition(name: TableName, partition: Partition) -> ttypes.Partition:
    """Encode one partition for the client."""
    return encode_partitions(name, [partition])[0]


_GROUPED = "hive.hcatalog.partition.spec.grouping.enabled"


def is_grouped(table: Table) -> bool:
    """Return True if specifications of the table's partitions are those that ``grouped`` makes."""
    return is_true(table.parameters.get(_GROUPED))


def grouped(table: Table, partitions: Iterable[ttypes.Partition]) -> list[ttypes.PartitionSpec]:
    """Encode partitions: a specification for each shared descriptor, and a list of those outside the table's location.

    Descriptors are equal but for a location below the table's. A partition without a location is in no list.
    """
    root, groups, outside = table.location or "", dict[tuple[bool, bytes], list[ttypes.Partition]](), []
    for partition in partitions:
        sd = partition.sd
        located = sd is not None and sd.location is not None
        if located and not (root and sd.location.startswith(root)):
            outside.append(partition)
        else:
            key = (located, b"" if sd is None else _encoded_but_for_location(sd))
            groups.setdefault(key, []).append(partition)
    specs = [
        _spec(table, shared=_shared_spec(root if located else None, group), root=root if located else None)
        for (located, _), group in groups.items()
    ]
    return [*specs, *([_spec(table, partitions=outside)] if outside else [])]


def _shared_spec(root: str | None, group: list[ttypes.Partition]) -> ttypes.PartitionSpecWithSharedSD:
    sd = group[0].sd or ttypes.StorageDescriptor(compressed=False, numBuckets=0)
    relative = [None if root is None else partition.sd.location[len(root) :] for partition in group]
    sd.location = root
    return ttypes.PartitionSpecWithSharedSD(
        [
            ttypes.PartitionWithoutSD(p.values, p.createTime, p.lastAccessTime, path, p.parameters)
            for p, path in zip(group, relative, strict=True)
        ],
        sd,
    )


def _spec(
    table: Table,
    partitions: list[ttypes.Partition] | None = None,
    shared: ttypes.PartitionSpecWithSharedSD | None = None,
    root: str | None = None,
) -> ttypes.PartitionSpec:
    return ttypes.PartitionSpec(
        dbName=table.name.db,
        tableName=table.name.table,
        rootPath=root,
        catName=table.name.catalog,
        sharedSDPartitionSpec=shared,
        partitionList=None if partitions is None else ttypes.PartitionListComposingSpec(partitions),
    )


def specification(table: Table, partitions: list[ttypes.Partition]) -> list[ttypes.PartitionSpec]:
    """Encode partitions as a specification below the table's location."""
    return [_spec(table, partitions, root=table.location)]
