"""What reads foreign input inside a process, each with the errors that it declares: fuzzed without a server.

Run as a process of its own, since what reads ORC files is C++: ``python -m tests.fuzz.targets SEED SECONDS [TARGET NUMBER]``.
It says on stdout what it did, one JSON line each; the line before an input that ends the process names that input. An
input that takes too long ends in a ``StalledError``, one that takes too much memory in a ``MemoryError``.
"""

import io
import json
import re
import resource
import signal
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyorc
from pyarrow import orc

from metastore.acid.bucket import encode
from metastore.acid.protobuf import fields
from metastore.acid.side_files import MalformedSideFileError, flushed_length
from metastore.acid.snapshots import TxnWriteIds, ValidTxnList, ValidWriteIdList
from metastore.acid.state import ListedFile, acid_state
from metastore.acid.table_kinds import TableKind
from metastore.acid.types import parse_type
from metastore.acid.violations import Surroundings, check_listing
from metastore.acid_tables.delete_files import DeleteFiles
from metastore.acid_tables.footers import event_counts, has_old_events, orc_tail
from metastore.acid_tables.listing import acid_directories
from metastore.acid_tables.partitions import PartitionPlace
from metastore.acid_tables.serde_storage import HiveStorage
from metastore.acid_tables.sources import DataFile
from metastore.acid_tables.table import AcidTable
from metastore.catalog.model import Table
from metastore.catalog.rules.expressions import refused_expression
from metastore.catalog.rules.partition_expression import parse_expression
from metastore.catalog.rules.partition_filter import parse_filter
from metastore.catalog.rules.partition_syntax import PartitionKey
from metastore.catalog.rules.storage_classes import LISTED, SCHEMA_URL, refused_storage
from metastore.catalog.rules.table_filter import TableFilter
from metastore.catalog.rules.transactional import is_insert_only
from metastore.client import MetastoreUnreachableError
from metastore.client.lock_plan import LockModes
from metastore.db.archives import Archive, Rows, require_known
from metastore.errors import (
    InvalidInputError,
    InvalidOperationError,
    InvalidRequestError,
    MetaError,
    MetastoreError,
    NoSuchObjectError,
)
from metastore.files import Files
from metastore.ids import TableName, table_name
from metastore.partition_names import DEFAULT_PARTITION
from metastore.planner.body import Body
from metastore.planner.call import PlannerCall
from metastore.planner.call_files import CallFiles
from metastore.planner.calls import CALLS
from metastore.planner.client_pool import MetastoreSettings
from metastore.roots import Roots
from metastore.spark.check.file_check import check_file
from metastore.spark.check.old_files import check_old
from metastore.streaming.columns import Column
from metastore.streaming.event_file import InsertFile
from metastore.streaming.plain_file import PlainFile
from metastore.streaming.records import from_mappings
from metastore.thrift_gen.hive_metastore import ttypes
from tests.fuzz import inputs
from tests.support.acid.creating import full_acid

LONGEST_S = 2.0
"""Of this process's time on one input: a hundred times what the slowest sound one takes."""
MEMORY = 1 << 30
"""Above what the process has when everything is imported."""
_EVENT = ("struct<operation:int,originalTransaction:bigint,bucket:int,rowId:bigint,currentTransaction:bigint,"
          "row:struct<v:string,at:timestamp>>")
_KEYS = [PartitionKey(name, kind) for name, kind in inputs.KEYS]
_TABLE = Table(TableName("hive", "d", "sales"), {}, owner="a" * 200, last_access_time=90, parameters={"team": "ab" * 100})


class StalledError(Exception):
    """An input took too long."""


@dataclass(frozen=True)
class Target:
    """``make``: dice to input; ``declared``: the errors that ``read`` may end in."""

    make: Callable[[Any], Any]
    read: Callable[[Any], object]
    declared: tuple[type[Exception], ...]


def _read_table_filter(text: str) -> None:
    TableFilter.of(text).accepts(_TABLE)


def _read_txn_list(text: str) -> None:
    found = ValidTxnList.parse(text)
    assert ValidTxnList.parse(found.format()) == found
    found.is_valid(5), found.is_aborted(5)


def _read_write_ids(text: str) -> None:
    found = TxnWriteIds.parse(text)
    assert TxnWriteIds.parse(found.format()) == found
    for one in found.tables:
        one.range_state(1, 9), one.aborted_range_state(1, 9), one.is_valid_base(3), one.for_compactor().range_state(1, 9)


def _read_listing(made: Any) -> None:
    """Check a listing as `table check` does, and choose files from it as readers do."""
    entries, metadata, _ = made
    listed = [ListedFile(*one) for one in entries]
    snapshot, txns = ValidWriteIdList("db.t", 9, 2, (2, 5), frozenset({5})), ValidTxnList.everything()
    check_listing(listed, Surroundings(snapshot, txns), lambda _path: metadata)
    acid_state(listed, snapshot, txns, lambda _path: metadata)


def _read_files(made: Any) -> None:
    """Create the listing's files on a disk, list them as a reader of a table does, and read them one by one."""
    entries, metadata, _ = made
    with tempfile.TemporaryDirectory(prefix="fuzz") as root:
        for name, size, is_dir in entries:
            path = Path(root) / name
            try:
                path.mkdir(parents=True) if is_dir else path.parent.mkdir(parents=True, exist_ok=True)
                if not is_dir:
                    content = metadata if name.endswith("_metadata_acid") else bytes(size % 1024)
                    path.write_bytes(content)
            except (OSError, ValueError):  # a name that no file can have
                continue
        table = AcidTable(name=table_name("db", "t"), kind=TableKind.FULL_ACID, location=root, columns=(), partition_keys=(),
                          bucket_columns=(), bucket_count=0, bucketing_version=2, file_format="orc", parameters={})
        acid_directories(Files(), table, [PartitionPlace("", (), root)], ValidWriteIdList("db.t", 9), ValidTxnList.everything())


def _sound_orc(dice: Any) -> bytes:
    out = io.BytesIO()
    compression = dice.choice([pyorc.CompressionKind.NONE, pyorc.CompressionKind.ZLIB, pyorc.CompressionKind.SNAPPY])
    with pyorc.Writer(out, _EVENT, compression=compression) as writer:
        rows = dice.choice([0, 1, 50])
        writer.writerows((0, 3, encode(0), row, 3, (f"v{row}", datetime(1965, 9, 12, tzinfo=UTC))) for row in range(rows))
        notes = {"hive.acid.key.index": f"3,{encode(0)},{rows - 1};".encode(), "hive.acid.stats": f"{rows},0,0".encode(),
                 "hive.acid.version": b"2"}
        writer.set_user_metadata(**{name: inputs.damaged(dice, text, 1) for name, text in notes.items() if dice.random() < 0.9})
    return out.getvalue()


def _orc(dice: Any) -> bytes:
    """Damage the bytes of an ORC file, mostly behind its stripes."""
    data = _sound_orc(dice)
    at = len(data) - dice.choice([30, 300, len(data)]) if len(data) > 300 else 0
    return data[:at] + inputs.damaged(dice, data[at:])


def _read_orc(data: bytes) -> None:
    """As the reader of a table, the check, and the reader of delete files look at one."""
    with tempfile.TemporaryDirectory(prefix="fuzz") as root:
        path = Path(root) / "delta_0000003_0000003_0000" / "bucket_00000"
        path.parent.mkdir()
        path.write_bytes(data)
        files = Files()
        state = acid_state(files.listing(root), ValidWriteIdList("db.t", 9), ValidTxnList.everything(), lambda _path: "{}")
        check_file(files, root, f"{path.parent.name}/bucket_00000", state.deltas[0])
        wanted = [DataFile(str(path), len(data))]
        tail = orc_tail(files, str(path))
        event_counts(tail), tail.spark_version
        DeleteFiles.of(files, wanted).read(files, str(path), ["rowId"])
        has_old_events(files, tail)


def _read_definition(made: Any) -> None:
    """Check that an accepted insert-only definition names only known classes, and that no class gets an unsafe key."""
    sd, parameters = made
    refused = refused_storage(sd, parameters)
    if refused is None and is_insert_only(parameters):
        serde = sd.get("serdeInfo") or {}
        named = (sd.get("inputFormat"), sd.get("outputFormat"), serde.get("serializationLib"))
        assert any(all(name in (None, "", known) for name, known in zip(named, listed, strict=True)) for listed in LISTED), named
    serde = SimpleNamespace(**{"serializationLib": "", "parameters": None, **(sd.get("serdeInfo") or {})})
    storage = HiveStorage.of(SimpleNamespace(**{"inputFormat": "", "outputFormat": "", **sd, "serdeInfo": serde}), [("a", "int")], parameters)
    keys = {line.partition("=")[0].encode().decode("unicode_escape") for line in storage.text().splitlines()}
    assert not keys & {"fs.s3a.endpoint", SCHEMA_URL, "acid.raw", "", "é=\n"}, keys
    storage.require_writable("d.t")


def _read_check(text: str) -> None:
    """Whatever is let through calls nothing that is not listed, by another way of reading it than ours."""
    if refused_expression(text) is not None:
        return
    bare = re.sub(r"'(?:[^'\\\\]|\\\\.|'')*'", "''", text, flags=re.DOTALL)
    assert not re.search(r"(?i)\b(reflect|java_method|identifier)\b\s*\(|\b(using|select)\b", re.sub(r'"[^"]*"|`[^`]*`', "x", bare)), text


def _read_archive(script: bytes) -> None:
    """Only rows of tables and states of sequences come out of it; each COPY ends where it ends."""
    archive = Archive(Path("pg_restore"), Path("x"), "public")
    for item in archive._items(io.BytesIO(script)):
        require_known(archive, item, {"txns": ["id", "state"], "s": []})
        if isinstance(item, Rows):
            while item.read(100):
                pass


def read_nested_rows(made: Any) -> None:
    """Check that the writers without Spark write these nested rows, in pieces of any size."""
    kinds, rows, ends = made
    columns = [Column(name, parse_type(kind)) for name, kind in kinds.items()]
    given = from_mappings(rows, columns)
    whole = pa.StructArray.from_arrays([given[name].combine_chunks() for name in kinds], fields=list(given.schema))
    with tempfile.TemporaryDirectory(prefix="fuzz") as root:
        for kind in (InsertFile, PlainFile):
            file = kind(Files(), root, 0, whole.type, compression="snappy")
            for start, end in pairwise(ends):
                file.insert(1, whole.slice(start, end - start))
            file.flush()
            file.close()
            found = orc.ORCFile(file.path).read().to_pylist()
            assert check_old(Files(), root, Path(file.path).name) == []
            assert [event.get("row", event) for event in found] == whole.slice(ends[0], ends[-1] - ends[0]).to_pylist()


class _Nowhere:
    """A metastore with one table that answers nothing else."""

    types = ttypes

    def get_table(self, db, name):
        if (db, name) != ("d", "t"):
            raise NoSuchObjectError(f"{db}.{name} table not found")
        return full_acid(self, db, name, {"id": "int", "v": "struct<a:int,b:string>"}, keys={"p": "date"}, location="file:/nowhere/t")

    def __getattr__(self, name):
        raise MetastoreUnreachableError(f"No metastore answers to {name}")


def _answer_call(made: tuple[str, bytes]) -> None:
    name, content = made
    settings = MetastoreSettings(timedelta(seconds=300), LockModes(), Roots(("file:/nowhere",)), ("file",))
    gone = threading.Event()
    gone.set()
    CALLS[name].answer(PlannerCall(Body.of(content), _Nowhere(), settings, CallFiles(gone=gone), None, gone))


TARGETS = {
    "definition": Target(inputs.definition, _read_definition, (InvalidOperationError,)),
    "check": Target(inputs.check_expression, _read_check, ()),
    "archive": Target(inputs.archive_script, _read_archive, (InvalidInputError,)),
    "planner_body": Target(lambda dice: inputs.planner_body(dice, sorted(CALLS)), _answer_call, (MetastoreError, OSError)),
    "expression": Target(inputs.serialised, lambda data: parse_expression(data, _KEYS, DEFAULT_PARTITION), (InvalidRequestError,)),
    "partition_filter": Target(inputs.partition_filter, lambda text: parse_filter(text, _KEYS), (InvalidRequestError,)),
    "table_filter": Target(inputs.table_filter, _read_table_filter, (InvalidRequestError,)),
    "txn_list": Target(inputs.txn_list, _read_txn_list, (InvalidInputError,)),
    "write_ids": Target(inputs.write_id_lists, _read_write_ids, (InvalidInputError,)),
    "listing": Target(inputs.listing, _read_listing, (MetaError,)),
    "files": Target(inputs.listing, _read_files, (MetaError, InvalidOperationError, OSError)),
    "side_file": Target(lambda dice: dice.randbytes(dice.randint(0, 40)), lambda data: flushed_length(data, "x"), (MalformedSideFileError,)),
    "protobuf": Target(lambda dice: inputs.damaged(dice, _sound_orc(dice)[-300:]), lambda data: list(fields(data)), (ValueError,)),
    "nested": Target(inputs.nested, read_nested_rows, ()),
    "orc": Target(_orc, _read_orc, (OSError,)),
}


def tried(target: Target, made: object) -> str:
    """Return the traceback of one input's failure, or "" if it did not fail."""
    signal.setitimer(signal.ITIMER_PROF, LONGEST_S)
    try:
        target.read(made)
    except target.declared:
        return ""
    except Exception:  # noqa: BLE001 - that is what is looked for
        return traceback.format_exc()
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return ""


def _stalled(*_: object) -> None:
    raise StalledError(f"one input took more than {LONGEST_S} s")


def _kb(what: str) -> int:
    return int(re.search(rf"{what}:\s+(\d+)", Path("/proc/self/status").read_text())[1])  # type: ignore[index]


def _told(**fields: object) -> None:
    print(json.dumps(fields), flush=True)


def main(seed: str, seconds: float, only: str = "", number: int = -1) -> None:
    """Each target in turn for its share of the time, or one input of one target."""
    pa.array([""])  # loads pandas, whose second would be the first input's
    signal.signal(signal.SIGPROF, _stalled)
    limit = (_kb("VmSize") << 10) + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for name, target in TARGETS.items():
        if only and name != only:
            continue
        end, at, before, longest, failures = time.monotonic() + seconds / len(TARGETS), 0, 0, 0.0, 0
        while (number < 0 and time.monotonic() < end) or (number >= 0 and at == 0):
            made = target.make(inputs.dice_of(seed, name, max(number, at)))
            if name == "orc":
                _told(trying=f"{seed}:{name}:{max(number, at)}")  # C++ may end the process without another word
            started = time.process_time()
            if failure := tried(target, made):
                failures += 1
                _told(failed=f"{seed}:{name}:{max(number, at)}", input=repr(made)[:2000], traceback=failure)
            longest = max(longest, time.process_time() - started)
            at += 1
            if at == 200:
                before = _kb("VmRSS")
            if failures == 5:
                break
        _told(target=name, inputs=at, longest_ms=round(longest * 1000), grown_kb=_kb("VmRSS") - before if before else 0)


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]), *sys.argv[3:4], *map(int, sys.argv[4:5]))
