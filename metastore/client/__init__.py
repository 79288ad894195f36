"""Clients of the metastore: plain Thrift calls, and transactions with locks and heartbeats."""

from typing import TYPE_CHECKING, Any

from metastore.client.client import AnswerLostError, MetastoreClient, MetastoreUnreachableError
from metastore.client.conflicts import WriteConflictError
from metastore.client.domain_client import DomainClient
from metastore.client.lock_manager import LockNotAcquiredError
from metastore.client.txn_manager import Transaction, TxnManager

if TYPE_CHECKING:
    from metastore.client.scans import scan

__all__ = [
    "AnswerLostError",
    "DomainClient",
    "LockNotAcquiredError",
    "MetastoreClient",
    "MetastoreUnreachableError",
    "Transaction",
    "TxnManager",
    "WriteConflictError",
    "scan",
]


def __getattr__(name: str) -> Any:
    """``scan`` brings Arrow along: only who reads tables imports it."""
    if name == "scan":
        from metastore.client.scans import scan

        return scan
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
