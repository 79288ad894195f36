"""The errors of the service, in the domain's words.

Rule: code below ``thrift_server`` raises these and nothing else on purpose; ``thrift_server.dispatch.errors`` holds the
one table that turns each into the exception Hive declares. A message names the fault, the object, and the remedy.
Messages never contain ``JDO``, ``Nucleus``, ``TTransport`` or ``TProtocol``: clients match those words.
"""


class MetastoreError(Exception):
    """Root of the tree. ``str(error)`` is the text that the client is shown."""


class MetaError(MetastoreError):
    """A request that cannot be served, where Hive declares nothing more specific (MetaException)."""


class InvalidRequestError(MetaError):
    """Error: a field is missing, negative, too long or out of range; nothing was changed."""


class UnavailableError(MetaError):
    """The database cannot be reached or is too busy; nothing was done and the call may be repeated."""


class OutcomeUnknownError(MetaError):
    """The connection broke while PostgreSQL was committing: the change is either whole or absent."""


class ConflictRetryError(UnavailableError):
    """PostgreSQL undid the work because of a deadlock or a serialization failure; the dispatcher runs it again."""


class HeldUpError(MetaError):
    """Another owner's lock is on an object that is to be dropped, renamed or emptied; nothing was changed.

    It is tried again.
    """


class NoAnswerError(MetastoreError):
    """There is no result, and Hive declares no exception for saying so: its server returns null."""


class NoSuchObjectError(MetastoreError):
    """A named database, table, partition, function, ... does not exist."""


class AlreadyExistsError(MetastoreError):
    """The name is taken."""


class InvalidObjectError(MetastoreError):
    """An object is not acceptable (bad name, bad column type, missing parent, ...)."""


class InvalidOperationError(MetastoreError):
    """The operation is not allowed on the object in its present state."""


class UnknownTableError(MetastoreError):
    """The table does not exist, for the calls that declare UnknownTableException."""


class UnknownDatabaseError(MetastoreError):
    """The database does not exist, for the calls that declare UnknownDBException."""


class UnknownPartitionError(MetastoreError):
    """The partition does not exist, for the calls that declare UnknownPartitionException."""


class InvalidPartitionError(MetastoreError):
    """Partition values that do not fit, for the calls that declare InvalidPartitionException."""


class InvalidInputError(MetastoreError):
    """The input is not valid, for the calls that declare InvalidInputException."""


class AccessDeniedError(MetastoreError):
    """The client may not make this call."""


class LimitReachedError(MetastoreError):
    """The clients of an address have used up their quota."""


class ConfigValueSecurityError(MetastoreError):
    """A configuration value that clients may not read."""


class EndedError(MetastoreError):
    """An object has ended. ``txn_id``: the transaction whose outcome the text shall name."""

    def __init__(self, text: str = "", txn_id: int | None = None) -> None:
        super().__init__(text)
        self.txn_id = txn_id


class NoSuchTxnError(EndedError):
    """The transaction is unknown, or it is committed where an open transaction is needed."""


class TxnAbortedError(EndedError):
    """The transaction was aborted; the message says by whom and why."""


class TxnOpenError(MetastoreError):
    """An acquired lock that belongs to an open transaction cannot be released alone."""


class NoSuchLockError(EndedError):
    """No lock request with this id is recorded."""


class NoSuchCompactionError(MetastoreError):
    """No compaction with this id is queued or in the history."""


class CompactionAbortedError(MetastoreError):
    """The compaction was aborted by an operator."""


class ClaimLostError(MetastoreError):
    """A worker's claim on a queue entry was taken over by another attempt: stop, and write nothing more."""
