"""Clients of the metastore: plain Thrift calls, and transactions with locks and heartbeats.

Rule: a module is imported when one of its names is first used. The server needs few of them, and reads no tables.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from metastore.client.client import AnswerLostError, MetastoreClient, MetastoreUnreachableError
    from metastore.client.conflicts import WriteConflictError
    from metastore.client.domain_client import DomainClient
    from metastore.client.lock_manager import LockNotAcquiredError
    from metastore.client.scans import scan
    from metastore.client.txn_manager import Transaction, TxnManager

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
_MODULES = {
    "AnswerLostError": "client",
    "DomainClient": "domain_client",
    "LockNotAcquiredError": "lock_manager",
    "MetastoreClient": "client",
    "MetastoreUnreachableError": "client",
    "Transaction": "txn_manager",
    "TxnManager": "txn_manager",
    "WriteConflictError": "conflicts",
    "scan": "scans",
}


def __getattr__(name: str) -> Any:
    """Import the module of a name."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
