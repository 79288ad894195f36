"""Rows of tables that transactions read: for each table 0, or ``WAIVED`` if nothing is kept of it.

**What a crash may take.** The first declaration of a transaction may be lost: then the Cleaner again assumes that it
reads everything. Later declarations must not be lost: the Cleaner would not wait for it with those tables. Existing
rows tell whether a declaration is the first; none are added while the transaction's row is locked.
"""

from collections.abc import Collection, Iterable
from typing import Any, NamedTuple

from metastore.db.arrays import columns
from metastore.db.engine import Database, PgTx
from metastore.db.prepared import Prepared
from metastore.db.statements import Statements
from metastore.ids import TableName
from metastore.txns.core.rules import Snapshot, TxnState, TxnType
from metastore.txns.core.store import SNAPSHOT, unpacked
from metastore.txns.reading.rules import refusal

_SQL = Statements(__file__)

_INSERT = Prepared(_SQL.text("insert_read_tables"))
_REGISTER = Prepared(
    "SELECT FROM txns WHERE id = %(txn)s::bigint FOR NO KEY UPDATE",
    _SQL.text("insert_read_tables"),
    _SQL.text("select_registered", snapshot=SNAPSHOT),
)


class _Registered(NamedTuple):
    state: TxnState | None
    waived: list[str]
    is_partial: bool
    snapshot: Snapshot


def register(db: Database, txn_id: int, tables: Collection[TableName], *, names_all: bool) -> Snapshot:
    """Record the tables that a transaction reads.

    Return a snapshot of open and aborted transactions without read-only ones.
    ``names_all``: each call names all tables read so far, so that a crash may lose the first declaration. Serialises
    on: the transaction's row. Retry: idempotent.
    Raises: TxnAbortedError, NoSuchTxnError, MetaError if a table was cleaned without waiting for it.
    """
    done = _registered(db, txn_id, tables, further=False, durable=not names_all)
    refused = refusal(txn_id, done.state, done.waived)
    if refused is None and done.is_partial:
        done = _registered(db, txn_id, tables, further=True, durable=True)
        refused = refusal(txn_id, done.state, done.waived)
    if refused is not None:
        raise refused
    return done.snapshot


def insert_read_tables(pg: PgTx, txn_id: int, tables: Iterable[TableName]) -> None:
    """Record the tables that a transaction reads, in the PostgreSQL transaction that opens it."""
    pg.sql(_INSERT, _parameters(txn_id, tables, further=True))


def _registered(
    db: Database, txn_id: int, tables: Collection[TableName], *, further: bool, durable: bool
) -> _Registered:
    parameters = _parameters(txn_id, tables, further=further) | {"hidden": [int(TxnType.READ_ONLY)]}
    [(state, waived, is_partial, *snapshot)] = db.once(_REGISTER, parameters, durable=durable)
    return _Registered(TxnState(state) if state else None, waived, is_partial, unpacked(*snapshot))


def _parameters(txn_id: int, names: Iterable[TableName], *, further: bool) -> dict[str, Any]:
    catalogs, dbs, tables = columns(sorted(names), 3)
    return {"txn": txn_id, "catalogs": catalogs, "dbs": dbs, "tables": tables, "further": further}
