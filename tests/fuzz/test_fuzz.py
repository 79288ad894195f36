"""Mutated messages of every method against a whole server: no traceback, no growth, no stall for others.

``make fuzz FUZZ_SECONDS=600 FUZZ_SEED=7``; a few seconds of it run in `make test`. A failure names the seed and the message.
"""

import os
import random
import re
import threading
import time
from pathlib import Path

from metastore.thrift_server.codec import CODECS
from metastore.thrift_server.protocol import BinaryProtocol
from tests.integration.wire.test_fields_absent import SENTENCE, variants
from tests.support.thrift_server import Peer, examples, message

SECONDS = float(os.environ.get("FUZZ_SECONDS", "5"))
SEED = int(os.environ.get("FUZZ_SEED", "1"))
GROWTH_KB = 64 << 10
STALL_S = 0.25
_SKIPPED = {"shutdown", "reinitialize"}


def resident_kb():
    return int(re.search(r"VmRSS:\s+(\d+)", Path("/proc/self/status").read_text())[1])


def corpus():
    """Messages of every method: with everything set, and as Hive's own classes wrote them."""
    found = [example["data"] for example in examples() if example["protocol"] == "binary"]
    for method in sorted(CODECS.keys() - _SKIPPED):
        codec = CODECS[method]
        full = next(arguments for what, arguments in variants(method) if what == "everything")
        found.append(message(method, BinaryProtocol()._encode(full, codec.arguments)))
    return found


TEXTS = [b"%" * 40 + b"b", b"(?i)" + b"%a" * 30, b"p='1' or " * 50 + b"p='2'", b"((((", b"\xff\xfe", b"../../etc", b"a\0b", b"1:2:3-9:5:",
         b"*" * 60, b"base_-1", b"delta_9999999999999999999_1", b"\x01\x00org.apache.hadoop.hive.ql.plan.ExprNodeGenericFuncDes\xe3"]


def mutated(dice, data):
    """Some bytes changed, cut, repeated, or a text replaced by an odd one of any length."""
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
                text = dice.choice(TEXTS)
                data[start:start + 4 + length] = len(text).to_bytes(4) + text
    return bytes(data)


class Watch(threading.Thread):
    """A second client that measures a cheap call meanwhile."""

    def __init__(self, address):
        super().__init__(daemon=True)
        self.address, self.longest, self.over = address, 0.0, threading.Event()

    def run(self):
        with Peer(self.address) as peer:
            while not self.over.wait(0.005):
                started = time.perf_counter()
                peer.call(message("getStatus"))
                self.longest = max(self.longest, time.perf_counter() - started)


def test_mutated_messages(server):
    host, port = server.thrift_uri.removeprefix("thrift://").rsplit(":", 1)
    address, dice, messages = (host, int(port)), random.Random(SEED), corpus()
    watch = Watch(address)
    watch.start()
    end, count, peer, tracebacks, before = time.monotonic() + SECONDS, 0, None, [], 0
    while time.monotonic() < end:
        data = mutated(dice, dice.choice(messages))
        peer = peer or Peer(address, timeout=0.1)
        count += 1
        try:
            kind, _, body = peer.call(data)
            if kind == 3 and SENTENCE in body.message:
                tracebacks.append(f"{body.message}\n  {data.hex()}")
        except (OSError, EOFError):  # closed, or it waits for more: the next message goes over another connection
            peer.sock.close()
            peer = None
        if count == 500:
            before = resident_kb()
    watch.over.set()
    watch.join(5)
    after = resident_kb()
    print(f"seed {SEED}: {count} messages, others waited at most {watch.longest * 1000:.0f} ms, {before} -> {after} KB")
    assert tracebacks == []
    if before:
        assert after - before < GROWTH_KB
    if SECONDS > 30:
        assert watch.longest < STALL_S
