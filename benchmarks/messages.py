"""Messages encoded before the measurement, with places for values known only during it, and cheap looks at answers.

The looks read a value at a known position in an answer. They check what they can without decoding, and decode an answer
that is not of the expected type, so that its error is raised.
"""

import struct
from itertools import pairwise
from typing import Any

from thrift.Thrift import TType

from benchmarks.load import request, result
from metastore.thrift_gen.hive_metastore import ttypes

TXN, WRITE_ID, LOCK_ID = (0x0102030405060700 + i for i in range(3))
"""Stand-ins for ids until these are known."""
SNAPSHOT = "the snapshot's text"
"""A stand-in for the text of a list of transactions."""
_ACQUIRED, _WAITING = (struct.pack(">i", state) for state in (ttypes.LockState.ACQUIRED, ttypes.LockState.WAITING))
_TEXT = struct.pack(">i", len(SNAPSHOT)) + SNAPSHOT.encode()


def pieces(method: str, *args: Any) -> tuple[bytes, ...]:
    """Return a message, cut at its stand-ins in the order in which they occur."""
    message = request(method, *args)
    cuts = sorted(
        (at, len(mark))
        for mark in (*(struct.pack(">q", number) for number in (TXN, WRITE_ID, LOCK_ID)), _TEXT)
        for at in occurrences(message, mark)
    )
    edges = [(0, 0), *cuts, (len(message), 0)]
    return tuple(message[start + size : end] for (start, size), (end, _) in pairwise(edges))


def occurrences(message: bytes, mark: bytes) -> list[int]:
    """Return all positions of ``mark`` in ``message``."""
    positions = []
    at = message.find(mark)
    while at >= 0:
        positions.append(at)
        at = message.find(mark, at + 1)
    return positions


def text(value: str) -> bytes:
    """Return a string as bytes of a message."""
    encoded = value.encode()
    return struct.pack(">i", len(encoded)) + encoded


def opened(reply: bytes) -> bytes:
    """Return the id in an answer to open_txns; it stands before the ends of two structs."""
    if len(reply) < 50:
        result("open_txns", reply)
    return reply[-10:-2]


def granted(reply: bytes) -> bytes:
    """Return the id in an answer to lock: before the state (a field head of 3 bytes, 4 bytes) and two structs' ends."""
    if reply[-6:-2] != _ACQUIRED:
        raise RuntimeError(f"the lock was not granted: {result('lock', reply)}")
    return reply[-17:-9]


def lock_state(method: str, reply: bytes) -> tuple[bytes, bool]:
    """Return the id in an answer to lock or check_lock, and True if granted; raise unless granted or waiting."""
    if reply[-6:-2] not in {_ACQUIRED, _WAITING}:
        raise RuntimeError(f"neither granted nor waiting: {result(method, reply)}")
    return reply[-17:-9], reply[-6:-2] == _ACQUIRED


def allocated(reply: bytes) -> bytes:
    """Return the last write id in an answer to allocate_table_write_ids; it stands before the ends of three structs."""
    if len(reply) < 60:
        result("allocate_table_write_ids", reply)
    return reply[-11:-3]


def void(method: str, reply: bytes) -> None:
    """Raise the error in the answer, if any."""
    if len(reply) != 12 + len(method) + 1:
        result(method, reply)


_MARK_AT = 12 + len("get_open_txns") + 3 + 3  # heads: message, result, first field
_COUNT_AT = _MARK_AT + 8 + 3 + 1
_IDS_AT = _COUNT_AT + 4


def whole_open_txns(reply: bytes) -> bool:
    """Return True if an answer to get_open_txns is complete: ids, numbers, bytes and the ends of two structs.

    Our server sends the ids twice, since some clients expect a list and others a set.
    """
    at = _MARK_AT - 3
    while at < len(reply):
        kind = reply[at]
        if kind == TType.STOP:
            return at + 2 == len(reply)
        if kind == TType.I64:
            at += 3 + 8
        elif kind in {TType.LIST, TType.SET}:
            at += 3 + 5 + 8 * int.from_bytes(reply[at + 4 : at + 8], "big")
        else:
            at += 3 + 4 + int.from_bytes(reply[at + 3 : at + 7], "big")
    return False


def snapshot_of(reply: bytes, own: int = 0) -> str:
    """Return the text that clients make of a get_open_txns answer without aborted ids (less their own id)."""
    if len(reply) < _IDS_AT:
        result("get_open_txns", reply)
    (mark,) = struct.unpack_from(">q", reply, _MARK_AT)
    (count,) = struct.unpack_from(">i", reply, _COUNT_AT)
    others = [txn_id for txn_id in struct.unpack_from(f">{count}q", reply, _IDS_AT) if txn_id != own]
    return f"{mark}:{min(others, default=2**63 - 1)}:{','.join(map(str, others))}:"
