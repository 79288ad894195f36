"""Mutated messages of every method against a whole server: no traceback, no growth, no stall for others.

``make fuzz FUZZ_SECONDS=600 FUZZ_SEED=7``; a few seconds of it run in `make test`. A failure names its input and the
message; ``make fuzz FUZZ_INPUT=7:message:123`` sends that one again. Besides every method: serialised expressions and
filters over a table with partitions, and id lists, sound and damaged.
"""

import os
import re
import threading
import time
from pathlib import Path

import pytest
import structlog

from metastore.thrift_gen.hive_metastore import ttypes
from metastore.thrift_server.wire.codec import CODECS
from metastore.thrift_server.wire.protocol import BinaryProtocol
from tests.fuzz import inputs
from tests.integration.wire.test_fields_absent import SENTENCE, UNKNOWN, variants
from tests.support.thrift_server import Peer, examples, message

SECONDS = float(os.environ.get("FUZZ_SECONDS", "4"))
SEED = os.environ.get("FUZZ_SEED", "1")
AGAIN = os.environ.get("FUZZ_INPUT", "")
GROWTH_KB = 64 << 10
STALL_S = 0.25
_SKIPPED = {"shutdown", "reinitialize"}
_DB, _TABLE = "fuzzed", "parts"


def resident_kb():
    return int(re.search(r"VmRSS:\s+(\d+)", Path("/proc/self/status").read_text())[1])


def corpus():
    """Messages of every method: with everything set, with each enum unknown, and as Hive's own classes wrote them."""
    found = [example["data"] for example in examples() if example["protocol"] == "binary"]
    for method in sorted(CODECS.keys() - _SKIPPED):
        codec = CODECS[method]
        for what, arguments in variants(method):
            if what == "everything" or str(UNKNOWN) in what:
                found.append(message(method, BinaryProtocol()._encode(arguments, codec.arguments)))
    return found


def mutated(dice, data):
    """Change, cut or repeat some bytes, or replace a text by an odd one of any length."""
    data = bytearray(data)
    head = 12 + int.from_bytes(data[4:8])
    for _ in range(dice.randint(1, 5)):
        at = dice.randint(head, max(head, len(data) - 1))
        kind = dice.randrange(6)
        if kind == 0 and at < len(data):
            data[at] = dice.randrange(256)
        elif kind == 1:
            data[at:at + 4] = dice.choice([0, 1, 255, 1 << 16, (1 << 31) - 1, 1 << 31]).to_bytes(4)
        elif kind == 2:
            del data[at:at + dice.randint(1, 30)]
        elif kind == 3:
            data[at:at] = data[max(head, at - 30):at] * dice.randint(1, 5)
        else:
            places = [found.start() for found in re.finditer(rb"\x0b\0.\0\0", data[head:], re.DOTALL)]
            if places:
                start = head + dice.choice(places) + 3
                length = int.from_bytes(data[start:start + 4])
                text = dice.choice(inputs.TEXTS)
                data[start:start + 4 + length] = len(text).to_bytes(4) + text
    return bytes(data)


def call(method, *values):
    """Build a message of this method with these arguments, in their declared order."""
    codec = CODECS[method]
    arguments = codec.arguments_class()
    for entry, value in zip(filter(None, codec.arguments_class.thrift_spec), values, strict=False):
        setattr(arguments, entry[2], value)
    return message(method, BinaryProtocol()._encode(arguments, codec.arguments))


def expression_call(dice):
    expr = inputs.serialised(dice)
    request = ttypes.PartitionsByExprRequest(dbName=_DB, tblName=_TABLE, expr=expr, maxParts=-1)
    if dice.random() < 0.1:
        parts = ttypes.RequestPartsSpec(exprs=[ttypes.DropPartitionsExpr(expr=expr)])
        return call("drop_partitions_req", ttypes.DropPartitionsRequest(dbName=_DB, tblName=_TABLE, parts=parts, ifExists=True))
    return call(dice.choice(["get_partitions_by_expr", "get_partitions_spec_by_expr"]), request)


def filter_call(dice):
    if dice.random() < 0.3:
        return call("get_table_names_by_filter", _DB, inputs.table_filter(dice), -1)
    text = inputs.partition_filter(dice)
    method = dice.choice(["get_partitions_by_filter", "get_part_specs_by_filter", "get_num_partitions_by_filter"])
    return call(method, _DB, _TABLE, text, -1)


def ids_call(dice):
    request = ttypes.GetValidWriteIdsRequest(fullTableNames=[f"{_DB}.{_TABLE}"], validTxnList=inputs.txn_list(dice))
    return call("get_valid_write_ids", request)


def made(seed, number, messages):
    """Message ``number`` of a seed."""
    dice = inputs.dice_of(seed, "message", number)
    aimed = dice.choice([None, None, expression_call, filter_call, ids_call])
    data = aimed(dice) if aimed else dice.choice(messages)
    return data if aimed and dice.random() < 0.8 else mutated(dice, data)


class Watch(threading.Thread):
    """A second client that measures a cheap call meanwhile.

    What counts is the lesser of the clock and of the processor time of this process, in which the server is: a machine
    that lets others run for a while stalls nobody.
    """

    def __init__(self, address):
        super().__init__(daemon=True)
        self.address, self.longest, self.clock, self.during, self.over = address, 0.0, 0.0, "", threading.Event()
        self.sent = ""  # what the first client is at

    def run(self):
        with Peer(self.address) as peer:
            while not self.over.wait(0.005):
                started, spent, during = time.perf_counter(), time.process_time(), self.sent
                peer.call(message("getStatus"))
                clock = time.perf_counter() - started
                took = min(clock, time.process_time() - spent)
                self.clock = max(self.clock, clock)
                if took > self.longest:
                    self.longest, self.during = took, during


class Complaints:
    """A processor of the log that keeps what says that something unforeseen happened, with the input of that moment."""

    def __init__(self):
        self.found, self.sent = [], ""

    def __call__(self, _logger, method, event):
        if event.get("exc_info") or method in {"error", "critical", "exception"}:
            self.found.append(f"{self.sent} {method}: {event}")
        raise structlog.DropEvent


@pytest.fixture
def complaints():
    processors, mine = structlog.get_config()["processors"], Complaints()
    kept = processors.copy()
    processors[:] = [mine]  # in place: loggers that are bound already have this list
    yield mine
    processors[:] = kept


@pytest.fixture
def partitions(client):
    """Create a table with the keys of the expressions and filters, and partitions with values of any kind."""
    client.create_database(ttypes.Database(name=_DB, description="", locationUri=None, parameters={}))
    serde = ttypes.SerDeInfo(name="", serializationLib="org.apache.hadoop.hive.ql.io.orc.OrcSerde", parameters={})
    sd = ttypes.StorageDescriptor(cols=[ttypes.FieldSchema("id", "int", "")], location=None, inputFormat="", outputFormat="", serdeInfo=serde,
                                  parameters={}, numBuckets=-1, bucketCols=[], sortCols=[])
    keys = [ttypes.FieldSchema(name, kind, "") for name, kind in inputs.KEYS]
    client.create_table(ttypes.Table(dbName=_DB, tableName=_TABLE, sd=sd, partitionKeys=keys, parameters={}, tableType="MANAGED_TABLE"))
    rows = [["ab", "5", "-1", "2020-02-29", "2020-02-29 01:02:03.5", "v"], ["%a_", "300", "9", "2021-01-01", "2021-01-01 00:00:00", "ü"],
            ["__HIVE_DEFAULT_PARTITION__"] * len(inputs.KEYS)]
    table = client.get_table(_DB, _TABLE)
    for values in rows:
        client.add_partition(ttypes.Partition(dbName=_DB, tableName=_TABLE, values=values, sd=table.sd, parameters={}))


def test_mutated_messages(server, partitions, complaints):
    host, port = server.thrift_uri.removeprefix("thrift://").rsplit(":", 1)
    seed, target, one = AGAIN.split(":") if AGAIN else (SEED, "message", "")
    if target != "message":
        pytest.skip("the input to try again is not a message")
    address, messages = (host, int(port)), corpus()
    watch = Watch(address)
    watch.start()
    started, number, peer, tracebacks, before = time.monotonic(), int(one or 0), None, [], 0
    while time.monotonic() - started < SECONDS:
        data = made(seed, number, messages)
        peer = peer or Peer(address, timeout=0.1)
        watch.sent = complaints.sent = f"FUZZ_INPUT={seed}:message:{number} {data.hex()[:4000]}"
        try:
            kind, _, body = peer.call(data)
            if kind == 3 and SENTENCE in body.message:
                tracebacks.append(f"{complaints.sent}\n  {body.message}")
        except (OSError, EOFError):  # closed, or it waits for more: the next message goes over another connection
            peer.sock.close()
            peer = None
        number += 1
        if one:
            break
        if not before and (number >= 500 or time.monotonic() - started > SECONDS / 3):
            before = resident_kb()
    if peer is not None:
        peer.sock.close()
    watch.over.set()
    watch.join(5)
    after = resident_kb()
    print(f"seed {seed}: {number} messages, others waited at most {watch.longest * 1000:.0f} ms of ours, "
          f"{watch.clock * 1000:.0f} ms by the clock, {before} -> {after} KB")
    assert tracebacks == [], "\n".join(tracebacks)
    assert complaints.found == [], "\n".join(complaints.found[:5])
    if before:
        assert after - before < GROWTH_KB, f"FUZZ_SEED={seed}: {before} KB became {after} KB over {number} messages"
    if SECONDS > 30:
        assert watch.longest < STALL_S, f"others waited {watch.longest:.3f} s during {watch.during}"
