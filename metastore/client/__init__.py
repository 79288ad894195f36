"""Clients of the metastore: plain Thrift calls, and transactions with locks and heartbeats."""

from metastore.client.client import AnswerLostError, MetastoreClient, MetastoreUnreachableError

__all__ = ["AnswerLostError", "MetastoreClient", "MetastoreUnreachableError"]
