"""Conversion of the service's exceptions back to the domain's errors, for code that does not know Thrift."""

from collections.abc import Iterator
from contextlib import contextmanager

from thrift.protocol.TBase import TExceptionBase
from thrift.Thrift import TApplicationException

from metastore import errors
from metastore.thrift_gen.hive_metastore import ttypes

ANSWERS = (TExceptionBase, TApplicationException)
"""The answers of a server instead of a result: exceptions that the IDL declares, and the protocol's own."""

_ERRORS: dict[type[TExceptionBase], type[errors.MetastoreError]] = {
    ttypes.NoSuchTxnException: errors.NoSuchTxnError,
    ttypes.TxnAbortedException: errors.TxnAbortedError,
    ttypes.TxnOpenException: errors.TxnOpenError,
    ttypes.NoSuchLockException: errors.NoSuchLockError,
    ttypes.NoSuchObjectException: errors.NoSuchObjectError,
    ttypes.AlreadyExistsException: errors.AlreadyExistsError,
    ttypes.InvalidObjectException: errors.InvalidObjectError,
    ttypes.InvalidOperationException: errors.InvalidOperationError,
    ttypes.InvalidInputException: errors.InvalidInputError,
    ttypes.UnknownTableException: errors.UnknownTableError,
    ttypes.UnknownDBException: errors.UnknownDatabaseError,
    ttypes.UnknownPartitionException: errors.UnknownPartitionError,
    ttypes.ConfigValSecurityException: errors.ConfigValueSecurityError,
    ttypes.NoSuchCompactionException: errors.NoSuchCompactionError,
    ttypes.CompactionAbortedException: errors.CompactionAbortedError,
}


@contextmanager
def domain_errors() -> Iterator[None]:
    """Raise ``metastore.errors`` where the calls in the block raise Thrift exceptions."""
    try:
        yield
    except ANSWERS as error:
        raise _ERRORS.get(type(error), errors.MetaError)(error.message or type(error).__name__) from error


def is_undeclared(error: errors.MetastoreError) -> bool:
    """Return True if the server's answer was an error that the method does not declare.

    Such an answer has only a text, no type.
    """
    return isinstance(error.__cause__, TApplicationException)


def is_unknown_method(error: Exception) -> bool:
    """Return True if the server does not have the method at all (an older server, or another product)."""
    cause = error if isinstance(error, TApplicationException) else error.__cause__
    return isinstance(cause, TApplicationException) and cause.type == TApplicationException.UNKNOWN_METHOD
