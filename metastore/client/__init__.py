"""Clients of the metastore: plain Thrift calls, and transactions with locks and heartbeats."""

from metastore.client.client import AnswerLostError, MetastoreClient, MetastoreUnreachableError
from metastore.client.conflicts import WriteConflictError
from metastore.client.domain_client import DomainClient
from metastore.client.lock_manager import LockNotAcquiredError
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
]
