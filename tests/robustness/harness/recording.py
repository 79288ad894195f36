"""A client that writes down every attempt of every call: its interval, what was asked, what is known of its outcome."""

import json
import os
import threading
from itertools import count
from pathlib import Path
from time import monotonic
from typing import Any

from thrift.Thrift import TApplicationException

from metastore.acid.snapshots import decode_aborted_bits
from metastore.client import MetastoreClient, MetastoreUnreachableError
from metastore.client.answers import ANSWERS
from metastore.client.client import _BrokenError
from metastore.thrift_gen.hive_metastore import ttypes
from tests.robustness.checker.history import Answer

# Their beginning is written down as well: what matters of them may be that they were asked for at all.
_INTENTS = frozenset(("commit_txn", "abort_txn", "abort_txns", "unlock"))
_WORDS = "nothing was changed"


class Log:
    """Lines of JSON in a file, each whole even if the process is killed after it."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self._numbers = count()

    def number(self) -> str:
        return f"{os.getpid()}-{next(self._numbers)}"

    def write(self, **line: Any) -> None:
        os.write(self._file, (json.dumps(line) + "\n").encode())

    def close(self) -> None:
        os.close(self._file)


class RecordingClient(MetastoreClient):
    """As its base class; attempts that the base class repeats are written down one by one."""

    def __init__(self, uri: str, log: Log, **options: Any) -> None:
        super().__init__(uri, **options)
        self._log, self._options = log, options

    def clone(self, *, timeout_s: float | None = None) -> "RecordingClient":
        options = {**self._options, **({"timeout_s": timeout_s} if timeout_s else {})}
        return RecordingClient(self.uri, self._log, **options)

    def _send(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        facts = {**asked(name, args), "owner": self.user}
        line = {"call": name, "n": self._log.number(), "thread": threading.current_thread().name, "t0": monotonic()}
        if name in _INTENTS:
            self._log.write(**line, t1=None, answer=Answer.UNKNOWN, facts=facts)
        try:
            result = super()._send(name, args, kwargs)
        except BaseException as error:
            self._log.write(**line, t1=monotonic(), answer=_outcome(error), facts={**facts, "error": _text(error)})
            raise
        self._log.write(**line, t1=monotonic(), answer=Answer.OK, facts={**facts, **answered(name, result)})
        return result


def _outcome(error: BaseException) -> Answer:
    """Return the outcome that a caller may conclude. An exception of the domain is a decision; an error that says so changed nothing."""
    if isinstance(error, MetastoreUnreachableError):
        return Answer.FAIL   # no connection: nothing was sent
    if isinstance(error, ANSWERS) and not isinstance(error, (ttypes.MetaException, TApplicationException)):
        return Answer.FAIL
    if isinstance(error, ANSWERS) and _WORDS in _text(error).lower():
        return Answer.FAIL
    return Answer.UNKNOWN


def _text(error: BaseException) -> str:
    cause = error.__cause__ if isinstance(error, _BrokenError) else error
    return f"{type(cause).__name__}: {getattr(cause, 'message', None) or error}"[:300]


def asked(name: str, args: tuple[Any, ...]) -> dict[str, Any]:  # noqa: PLR0911 - one line per method
    """Return the facts of a request that the checker needs."""
    request = args[0] if args else None
    match name:
        case "open_txns":
            return {"read_only": request.txn_type == ttypes.TxnType.READ_ONLY}
        case "commit_txn":
            return {"txn": request.txnid, "vouched": request.exclWriteEnabled}
        case "abort_txn":
            return {"txn": request.txnid}
        case "metastore_txn_outcome":
            return {"txn": request}
        case "abort_txns":
            return {"txns": list(request.txn_ids)}
        case "lock":
            return {"txn": request.txnid, "components": [
                [ttypes.LockType._VALUES_TO_NAMES[one.type].lower(), one.dbname, one.tablename or "",
                 one.partitionname or ""] for one in request.component]}
        case "check_lock" | "unlock":
            return {"lock": request.lockid}
        case "heartbeat":
            return {"txn": request.txnid, "lock": request.lockid}
        case "allocate_table_write_ids":
            return {"table": request.tableName, "txns": [str(one) for one in request.txnIds],
                    "reallocate": bool(request.reallocate)}
    return {}


def answered(name: str, result: Any) -> dict[str, Any]:
    """Return the facts of an answer that the checker needs."""
    match name:
        case "open_txns":
            return {"ids": list(result.txn_ids)}
        case "get_open_txns" | "get_open_txns_req":
            ids = sorted(result.open_txns)
            aborted = decode_aborted_bits(tuple(result.open_txns), result.abortedBits or b"")
            return {"mark": result.txn_high_water_mark, "open": [txn for txn in ids if txn not in aborted],
                    "aborted": sorted(aborted)}
        case "get_open_txns_info":
            by_state = {state: [one.id for one in result.open_txns if one.state == state]
                        for state in (ttypes.TxnState.OPEN, ttypes.TxnState.ABORTED)}
            return {"mark": result.txn_high_water_mark, "open": by_state[ttypes.TxnState.OPEN],
                    "aborted": by_state[ttypes.TxnState.ABORTED]}
        case "lock":
            return {"lock": result.lockid, "state": ttypes.LockState._VALUES_TO_NAMES[result.state].lower()}
        case "metastore_txn_outcome":
            return {"outcome": result.outcome}
        case "check_lock":
            return {"state": ttypes.LockState._VALUES_TO_NAMES[result.state].lower()}
        case "allocate_table_write_ids":
            return {"write_ids": {str(pair.txnId): pair.writeId for pair in result.txnToWriteIds}}
    return {}
