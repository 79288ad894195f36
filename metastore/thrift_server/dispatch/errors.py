"""Translation of our errors to the exceptions that Hive declares: the one table.

Rule: every `MetastoreError` has an entry. A method can only send what it declares, so an error whose exception it does
not declare goes out as MetaException if that is declared, and as TApplicationException(INTERNAL_ERROR) with the same
text otherwise. Clients decide by type first and by words second, so texts are never empty.
Source: CAT-X1, CLIENT-3, CLIENT-4.
"""

from collections.abc import Container, Mapping

from thrift.Thrift import TApplicationException, TException

from metastore import errors
from metastore.thrift_gen.hive_metastore import ttypes

LONGEST_TEXT = 1500
"""Names may be as long as a message: a text that quotes a name need not be."""

EXCEPTIONS: Mapping[type[errors.MetastoreError], type[TException]] = {
    errors.MetastoreError: ttypes.MetaException,
    errors.MetaError: ttypes.MetaException,
    errors.InvalidRequestError: ttypes.MetaException,
    errors.UnavailableError: ttypes.MetaException,
    errors.OutcomeUnknownError: ttypes.MetaException,
    errors.ConflictRetryError: ttypes.MetaException,
    errors.HeldUpError: ttypes.MetaException,
    errors.NoAnswerError: ttypes.MetaException,
    errors.NoSuchObjectError: ttypes.NoSuchObjectException,
    errors.AlreadyExistsError: ttypes.AlreadyExistsException,
    errors.InvalidObjectError: ttypes.InvalidObjectException,
    errors.InvalidOperationError: ttypes.InvalidOperationException,
    errors.UnknownTableError: ttypes.UnknownTableException,
    errors.UnknownDatabaseError: ttypes.UnknownDBException,
    errors.UnknownPartitionError: ttypes.UnknownPartitionException,
    errors.InvalidPartitionError: ttypes.InvalidPartitionException,
    errors.InvalidInputError: ttypes.InvalidInputException,
    errors.AccessDeniedError: ttypes.MetaException,
    errors.LimitReachedError: ttypes.MetaException,
    errors.ConfigValueSecurityError: ttypes.ConfigValSecurityException,
    errors.EndedError: ttypes.MetaException,
    errors.NoSuchTxnError: ttypes.NoSuchTxnException,
    errors.TxnAbortedError: ttypes.TxnAbortedException,
    errors.TxnOpenError: ttypes.TxnOpenException,
    errors.NoSuchLockError: ttypes.NoSuchLockException,
    errors.NoSuchCompactionError: ttypes.NoSuchCompactionException,
    errors.CompactionAbortedError: ttypes.CompactionAbortedException,
    errors.ClaimLostError: ttypes.MetaException,
}


def exception_class(error: errors.MetastoreError) -> type[TException]:
    """Return the Thrift exception for an error: its own entry, or that of its nearest ancestor."""
    return next(EXCEPTIONS[ancestor] for ancestor in type(error).__mro__ if ancestor in EXCEPTIONS)


def wire_exception(error: BaseException, method: str, declared: Container[type]) -> TException:
    """Convert an error raised by a handler into the exception sent to the client.

    ``declared``: exceptions of the method.

    Thrift exceptions that the method declares pass through; so do TApplicationExceptions.
    """
    if type(error) in declared or isinstance(error, TApplicationException):
        return error
    text = str(error) or type(error).__name__
    if len(text) > LONGEST_TEXT:
        text = f"{text[: LONGEST_TEXT // 2]} ... {text[-LONGEST_TEXT // 2 :]}"  # Long names may come first.
    if isinstance(error, errors.NoAnswerError):
        return TApplicationException(TApplicationException.MISSING_RESULT, text)
    if isinstance(error, errors.MetastoreError):
        for candidate in (exception_class(error), ttypes.MetaException):
            if candidate in declared:
                return candidate(text)
        return TApplicationException(TApplicationException.INTERNAL_ERROR, text)
    cause = text if isinstance(error, TException) else f"{type(error).__name__}: {text}"
    return TApplicationException(TApplicationException.INTERNAL_ERROR, f"Internal error processing {method}: {cause}")
