"""Errors as the planner answers them: a status, a class and a sentence.

Rule: an error of the user, or because of another transaction, has its own sentence. Our own fault is reported as a
fault, and the log has the details.
"""

from http import HTTPStatus

from metastore.client import LockNotAcquiredError, MetastoreUnreachableError
from metastore.errors import (
    AccessDeniedError,
    EndedError,
    LimitReachedError,
    MetastoreError,
    NoSuchObjectError,
    UnavailableError,
    UnknownDatabaseError,
    UnknownPartitionError,
    UnknownTableError,
)
from metastore.planner.call import Answer

_STATUSES: tuple[tuple[tuple[type[Exception], ...], HTTPStatus], ...] = (
    ((NoSuchObjectError, UnknownTableError, UnknownDatabaseError, UnknownPartitionError), HTTPStatus.NOT_FOUND),
    ((EndedError, LockNotAcquiredError), HTTPStatus.CONFLICT),
    ((MetastoreUnreachableError, UnavailableError, OSError), HTTPStatus.BAD_GATEWAY),
    ((AccessDeniedError,), HTTPStatus.FORBIDDEN),
    ((LimitReachedError,), HTTPStatus.SERVICE_UNAVAILABLE),
    ((MetastoreError,), HTTPStatus.BAD_REQUEST),
)


def status_of(error: Exception) -> HTTPStatus:
    """Return the status; 500 for an unforeseen error."""
    return next((status for kinds, status in _STATUSES if isinstance(error, kinds)), HTTPStatus.INTERNAL_SERVER_ERROR)


def answer_of(error: Exception) -> Answer:
    """Return ``error``, the class by which the caller decides, and ``message``, the sentence for its user."""
    if isinstance(error, MetastoreError):
        return {"error": type(error).__name__, "message": str(error) or type(error).__name__}
    if isinstance(error, OSError):
        name = f": {error.filename}" if error.filename else ""
        text = error.strerror or str(error) or type(error).__name__
        return {"error": "StorageError", "message": f"The table's files cannot be read: {text}{name}"}
    return {"error": "PlannerError", "message": f"The planner failed ({type(error).__name__}); its log says more."}
