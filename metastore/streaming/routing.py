"""Routing of rows: to a partition by their partition keys, to a bucket by their bucketing columns."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from metastore.acid.hashes import bucket_of
from metastore.partition_names import DEFAULT_PARTITION
from metastore.streaming.columns import Column
from metastore.streaming.table import StreamTable

PartitionValues = tuple[str | None, ...]
"""The values of each partition key in the table's order, as Hive writes them; None for NULL and its spellings."""


class Routed(NamedTuple):
    """Rows for one file; ``bucket`` is None if the table has no buckets."""

    partition: PartitionValues
    bucket: int | None
    rows: pa.StructArray


def routed(table: StreamTable, records: pa.Table, static: PartitionValues = ()) -> Iterator[Routed]:
    """Yield the rows of ``records`` (columns, and partition keys unless ``static`` has their values), file by file."""
    records = records.combine_chunks()
    for partition, at in _by_partition(table, records, static):
        part = records if at is None else records.take(at)
        for bucket, within in _by_bucket(table, part):
            rows = part if within is None else part.take(within)
            arrays = [_whole(rows.column(column.name)) for column in table.columns]
            yield Routed(partition, bucket, pa.StructArray.from_arrays(arrays, fields=list(table.row_type)))


def partition_values(column: Column, values: Sequence[Any]) -> list[str | None]:
    """Format values of a partition key as Hive writes them in names."""
    if column.type.kind == "boolean":
        return [None if value is None else str(value).lower() for value in values]
    is_decimal = column.type.kind == "decimal"
    texts = ("" if value is None else f"{value:f}" if is_decimal else str(value) for value in values)
    return [None if text in ("", DEFAULT_PARTITION) else text for text in texts]


def _by_partition(
    table: StreamTable, records: pa.Table, static: PartitionValues = ()
) -> Iterator[tuple[PartitionValues, pa.Array | None]]:
    """Yield each partition and the positions of its rows; positions are None if there is only one partition."""
    if static or not table.partition_keys:
        yield static, None
        return
    texts = (partition_values(key, records.column(key.name).to_pylist()) for key in table.partition_keys)
    rows: dict[PartitionValues, list[int]] = {}
    for at, values in enumerate(zip(*texts, strict=True)):
        rows.setdefault(values, []).append(at)
    if len(rows) == 1:
        yield next(iter(rows)), None
        return
    for values, places in rows.items():
        yield values, pa.array(places, pa.int64())


def _by_bucket(table: StreamTable, records: pa.Table) -> Iterator[tuple[int | None, pa.Array | None]]:
    if not table.bucket_count:
        yield None, None
        return
    kinds = [column.type for column in table.bucket_columns]
    known: dict[tuple[Any, ...], int] = {}
    numbers = []
    for values in zip(*(records.column(column.name).to_pylist() for column in table.bucket_columns), strict=True):
        key = values if all(value is None or isinstance(value, int | str) for value in values) else ()
        bucket = known.get(key) if key else None
        if bucket is None:
            bucket = bucket_of(values, kinds, table.bucket_count, table.bucketing_version)
            known[key] = bucket
        numbers.append(bucket)
    array = pa.array(numbers, pa.int32())
    for bucket in sorted(set(numbers)):
        yield bucket, pc.indices_nonzero(pc.equal(array, bucket)).cast(pa.int64())


def _whole(array: pa.ChunkedArray) -> pa.Array:
    """Return the array of a column in a single piece or none."""
    if array.num_chunks == 1:
        return array.chunk(0)
    return pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([], array.type)
