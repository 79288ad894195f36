"""A streaming connection without Spark: rows per second and the time of a commit, beside pyarrow alone writing ORC.

    python -m benchmarks.streaming [--rows 300000] [--row-bytes 1000] [--per-transaction 10000] [--runs 3]

One thread, one table without partitions. A row is a number, a name, an amount and a text of random words, about 1 KB.
The peer reads the same input in equal blocks and writes one plain ORC file with pyarrow, in the same process: no
transactions, no ids, nothing checked, nothing forced to disk. It is the limit, not an equal.

Rows per second of the clock show a user's rate on this machine now; rows per second of this process's own processor
time show the cost of a row, however busy the machine is.
"""

import argparse
import io
import json
import os
import random
import statistics
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
from pyarrow import csv, orc

from benchmarks import peers
from metastore.client import MetastoreClient
from metastore.streaming import Delimited, Json, connect

_BLOCK = 1000
_KINDS = {"id": pa.int64(), "name": pa.string(), "amount": pa.float64(), "note": pa.string()}


class Input(NamedTuple):
    """A way to hand over rows: blocks of them, and the settings by which the connection reads them."""

    name: str
    blocks: list[Any]
    records: Any


def rows(count: int, row_bytes: int) -> Iterator[tuple[int, str, float, str]]:
    """Return ``count`` rows of about ``row_bytes`` bytes."""
    chance = random.Random(7)
    words = [f"{chance.getrandbits(40):x}" for _ in range(5000)]
    for number in range(count):
        text: list[str] = []
        while sum(map(len, text)) + len(text) < row_bytes - 40:
            text += chance.choices(words, k=10)
        yield number, f"customer-{number % 5000}", number / 7, " ".join(text)[: row_bytes - 40]


def inputs(count: int, row_bytes: int) -> list[Input]:
    """Return the same rows as Arrow tables, as delimited lines and as JSON."""
    blocks: list[list[tuple[Any, ...]]] = [[]]
    for row in rows(count, row_bytes):
        if len(blocks[-1]) == _BLOCK:
            blocks.append([])
        blocks[-1].append(row)
    schema = pa.schema(_KINDS)
    arrow = [pa.Table.from_pylist([dict(zip(_KINDS, row, strict=True)) for row in block], schema) for block in blocks]
    lines = [[f"{a},{b},{c!r},{d}".encode() for a, b, c, d in block] for block in blocks]
    objects = [[json.dumps(dict(zip(_KINDS, row, strict=True))).encode() for row in block] for block in blocks]
    return [
        Input("Arrow tables", arrow, None),
        Input("delimited lines", lines, Delimited()),
        Input("JSON", objects, Json()),
    ]


def create(client: MetastoreClient, *tables: str) -> None:
    """Create the database ``bench`` with tables of these rows; ``events`` if none is named."""
    types = client.types
    client.create_database(types.Database(name="bench", description="", locationUri=None, parameters={}))
    columns = [
        types.FieldSchema(name=name, type=kind, comment=None)
        for name, kind in (("id", "bigint"), ("name", "string"), ("amount", "double"), ("note", "string"))
    ]
    orc_classes = "org.apache.hadoop.hive.ql.io.orc.Orc"
    sd = types.StorageDescriptor(
        cols=columns,
        location=None,
        inputFormat=f"{orc_classes}InputFormat",
        outputFormat=f"{orc_classes}OutputFormat",
        compressed=False,
        numBuckets=-1,
        bucketCols=[],
        sortCols=[],
        parameters={},
        storedAsSubDirectories=False,
        serdeInfo=types.SerDeInfo(name=None, serializationLib=f"{orc_classes}Serde", parameters={}),
    )
    for name in tables or ("events",):
        client.create_table(
            types.Table(
                tableName=name,
                dbName="bench",
                owner="bench",
                createTime=0,
                lastAccessTime=0,
                retention=0,
                sd=sd,
                partitionKeys=[],
                parameters={"transactional": "true"},
                tableType="MANAGED_TABLE",
            )
        )


class Rates(NamedTuple):
    """Rows per second."""

    clock: float
    processor: float


class Stopwatch:
    """A watch of elapsed time and of processor time."""

    def __init__(self) -> None:
        self._begin = time.perf_counter(), time.process_time()

    def rates(self, rows: int) -> Rates:
        """Return ``rows`` a second since the start, by both times."""
        return Rates(rows / (time.perf_counter() - self._begin[0]), rows / (time.process_time() - self._begin[1]))


def plain(source: Input, compression: str, folder: Path) -> Rates:
    """Return the rates of pyarrow alone, reading the same input in the same way."""
    count = 0
    watch = Stopwatch()
    with orc.ORCWriter(str(folder / "plain.orc"), compression=compression) as writer:
        for block in source.blocks:
            table = parsed(source, block)
            writer.write(table)
            count += table.num_rows
    return watch.rates(count)


def parsed(source: Input, block: Any) -> pa.Table:
    """Return a block of records as an Arrow table."""
    if isinstance(source.records, Delimited):
        return csv.read_csv(
            io.BytesIO(b"\n".join(block)),
            read_options=csv.ReadOptions(column_names=list(_KINDS)),
            convert_options=csv.ConvertOptions(column_types=_KINDS),
        )
    if isinstance(source.records, Json):
        return pa.Table.from_pylist([json.loads(line) for line in block], schema=pa.schema(_KINDS))
    return block


class Streamed(NamedTuple):
    """One run over all rows; its time includes the end of the last batch."""

    rates: Rates
    commits: list[float]


def stream(source: Input, client: MetastoreClient, compression: str, per_transaction: int, batch: int) -> Streamed:
    """Write all blocks through a streaming connection."""
    commits, count = [], 0
    watch = Stopwatch()
    with connect(
        "bench.events", client=client, records=source.records, compression=compression, transactions_per_batch=batch
    ) as connection:
        for transaction in grouped(source.blocks, max(1, per_transaction // _BLOCK)):
            connection.begin_transaction()
            for block in transaction:
                count += connection.write(block)
            at = time.perf_counter()
            connection.commit_transaction()
            commits.append(time.perf_counter() - at)
    return Streamed(watch.rates(count), commits)


def grouped(blocks: list[Any], size: int) -> Iterable[list[Any]]:
    """Return the blocks in lists of ``size``."""
    return (blocks[at : at + size] for at in range(0, len(blocks), size))


def main() -> None:
    """Start a server and measure the connection beside pyarrow."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=300_000)
    parser.add_argument("--row-bytes", type=int, default=1000)
    parser.add_argument("--per-transaction", type=int, default=10_000)
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        work = Path(folder)
        work.chmod(0o711)
        server, ready = peers.start_ours(work, "--no-loops")
        try:
            with MetastoreClient(ready["thrift"]) as client:
                create(client)
                compare(client, work, options)
        finally:
            peers.end(server)


def compare(client: MetastoreClient, work: Path, options: argparse.Namespace) -> None:
    """Measure each kind of record and compression, and print a line for each."""
    print(
        f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, pyarrow {pa.__version__}; {options.rows} rows of "
        f"{options.row_bytes} bytes in blocks of {_BLOCK}, {options.per_transaction} rows a transaction, one thread; "
        f"median of {options.runs} runs"
    )
    print(f"{'':<36} {'rows/s':>9} {'limit':>9} {'':>5} {'rows/CPU-s':>11} {'limit':>9} {'':>5}   commit")
    print(
        f"{'input':<16} {'compression':<13} {'batch':>5} {'ours':>9} {'pyarrow':>9} {'ratio':>5} {'ours':>11} "
        f"{'pyarrow':>9} {'ratio':>5} {'p50':>8} {'p99':>8}  (target: 50000 rows/s, p99 < 200 ms)"
    )
    for source in inputs(options.rows, options.row_bytes):
        for compression, batch in (("snappy", 1), ("snappy", 20), ("zlib", 20)):
            ours, theirs, commits = [], [], []
            for _ in range(options.runs):
                run = stream(source, client, compression, options.per_transaction, batch)
                ours.append(run.rates)
                commits += run.commits
                theirs.append(plain(source, compression, work))
            mine, limit = median(ours), median(theirs)
            print(
                f"{source.name:<16} {compression:<13} {batch:>5} {mine.clock:>9.0f} {limit.clock:>9.0f} "
                f"{mine.clock / limit.clock:>5.2f} {mine.processor:>11.0f} {limit.processor:>9.0f} "
                f"{mine.processor / limit.processor:>5.2f} {quantile(commits, 0.5):>5.1f} ms "
                f"{quantile(commits, 0.99):>5.0f} ms",
                flush=True,
            )


def median(rates: list[Rates]) -> Rates:
    """Return the medians of both rates."""
    return Rates(*(statistics.median(values) for values in zip(*rates, strict=True)))


def quantile(values: list[float], share: float) -> float:
    """Return a quantile in milliseconds."""
    return sorted(values)[min(len(values) - 1, int(share * len(values)))] * 1000


if __name__ == "__main__":
    main()
