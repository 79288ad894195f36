"""A reader of a Hive metastore's transaction tables (3.x or 4.x on PostgreSQL), and a writer of the same rows in ours.

Rule: all of it is read in one snapshot, and written in one transaction. Hive keeps instants as milliseconds, its names
in upper case (4.x) or in lower case (3.x), and knows no catalogs here: its tables are those of the catalog ``hive``.
"""

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any, NamedTuple

import psycopg2

from metastore.db.arrays import columns
from metastore.db.engine import PgTx
from metastore.errors import InvalidInputError, UnavailableError
from metastore.ids import DEFAULT_CATALOG, TableName
from metastore.partition_names import canonical
from metastore.txns.adoption.rules import Marks

_CONNECT_S = 10
_OPEN_OR_ABORTED = """SELECT "TXN_ID" FROM "TXNS" WHERE "TXN_STATE" IN ('o', 'a')"""
_LOCK_TYPES = {"r": "shared_read", "w": "shared_write", "x": "excl_write", "e": "exclusive"}


class HiveState(NamedTuple):
    """The rows that are taken over."""

    marks: Marks
    compactions: int
    txns: list[tuple[Any, ...]]
    owners: list[tuple[Any, ...]]
    components: list[tuple[Any, ...]]
    completed: list[tuple[Any, ...]]
    write_sets: list[tuple[Any, ...]]
    locks: list[tuple[Any, ...]]


def read_hive(url: str) -> HiveState:
    """Read everything. Raises: UnavailableError (cannot be reached), InvalidInputError (no such tables)."""
    with _hive(url) as sql:
        next_txn_id = (
            sql('SELECT "NTXN_NEXT" FROM "NEXT_TXN_ID"')[0][0]
            if sql.is_3
            else max(
                sql('SELECT coalesce(max("TXN_ID"), 0) + 1 FROM "TXNS"')[0][0],
                sql('SELECT last_value + is_called::int FROM "TXNS_TXN_ID_SEQ"')[0][0],
            )
        )
        write_ids = {
            _table(db, table): next_id
            for db, table, next_id in sql('SELECT "NWI_DATABASE", "NWI_TABLE", "NWI_NEXT" FROM "NEXT_WRITE_ID"')
        }
        marks = Marks(
            int(next_txn_id),
            sql('SELECT "NL_NEXT" FROM "NEXT_LOCK_ID"')[0][0],
            sql('SELECT "NCQ_NEXT" FROM "NEXT_COMPACTION_QUEUE_ID"')[0][0],
            write_ids,
        )
        return HiveState(
            marks,
            sql("""SELECT count(*) FROM "COMPACTION_QUEUE" WHERE "CQ_STATE" IN ('w', 'r')""")[0][0],
            [
                (txn, "open" if state == "o" else "aborted", kind or 0, user, host, agent or "Unknown")
                for txn, state, kind, user, host, agent in sql(
                    'SELECT "TXN_ID", "TXN_STATE", "TXN_TYPE", "TXN_USER", "TXN_HOST", "TXN_AGENT_INFO"'
                    """ FROM "TXNS" WHERE "TXN_STATE" IN ('o', 'a') ORDER BY 1"""
                )
            ],
            [
                (txn, *_table(db, table), write_id)
                for txn, db, table, write_id in sql(
                    'SELECT "T2W_TXNID", "T2W_DATABASE", "T2W_TABLE", "T2W_WRITEID" FROM "TXN_TO_WRITE_ID"'
                    f' WHERE "T2W_TXNID" IN ({_OPEN_OR_ABORTED})'
                )
            ],
            [
                (txn, *_object(db, table, partition), operation, write_id)
                for txn, db, table, partition, operation, write_id in sql(
                    'SELECT "TC_TXNID", "TC_DATABASE", "TC_TABLE", "TC_PARTITION", "TC_OPERATION_TYPE", "TC_WRITEID"'
                    f""" FROM "TXN_COMPONENTS" WHERE "TC_OPERATION_TYPE" IN ('i', 'u', 'd', 'c')
                 AND "TC_TXNID" IN ({_OPEN_OR_ABORTED})"""
                )
            ],
            [
                (txn, *_object(db, table, partition), write_id, int(changed == "Y"))
                for txn, db, table, partition, write_id, changed in sql(
                    'SELECT "CTC_TXNID", "CTC_DATABASE", "CTC_TABLE", "CTC_PARTITION", "CTC_WRITEID",'
                    ' "CTC_UPDATE_DELETE" FROM "COMPLETED_TXN_COMPONENTS"'
                )
            ],
            [
                (txn, commit, *_object(db, table, partition), operation)
                for txn, commit, db, table, partition, operation in sql(
                    'SELECT "WS_TXNID", "WS_COMMIT_ID", "WS_DATABASE", "WS_TABLE", "WS_PARTITION", "WS_OPERATION_TYPE"'
                    ' FROM "WRITE_SET"'
                )
            ],
            [
                (
                    ext,
                    number,
                    txn,
                    *_object(db, table, partition),
                    _LOCK_TYPES[kind],
                    "acquired" if state == "a" else "waiting",
                    user,
                    host,
                    agent or "Unknown",
                )
                for ext, number, txn, db, table, partition, kind, state, user, host, agent in sql(
                    'SELECT "HL_LOCK_EXT_ID", "HL_LOCK_INT_ID", "HL_TXNID", "HL_DB", "HL_TABLE", "HL_PARTITION",'
                    ' "HL_LOCK_TYPE", "HL_LOCK_STATE", "HL_USER", "HL_HOST", "HL_AGENT_INFO" FROM "HIVE_LOCKS"'
                )
            ],
        )


def lock_marks(pg: PgTx) -> Marks:
    """Lock our own marks until this PostgreSQL transaction ends, and return them."""
    [(txn_id,)] = pg.sql("SELECT next_txn_id FROM txn_counter FOR UPDATE")
    [(lock_id,)] = pg.sql("SELECT last_value + is_called::int FROM lock_ext_id")
    [(compaction_id,)] = pg.sql("SELECT last_value + is_called::int FROM compaction_id")
    rows = pg.sql('SELECT catalog, db, "table", next_write_id FROM next_write_ids FOR UPDATE')
    return Marks(txn_id, lock_id, compaction_id, {TableName(*name): next_id for *name, next_id in rows})


def insert_state(pg: PgTx, state: HiveState) -> None:
    """Insert everything that is taken over; existing rows stay. Marks only go up."""
    marks = state.marks
    pg.sql(
        "UPDATE txn_counter SET next_txn_id = %(next)s, reserved_until = greatest(reserved_until, %(next)s);"
        " SELECT setval('lock_ext_id', greatest(%(lock)s, (SELECT last_value FROM lock_ext_id)), false);"
        " SELECT setval('compaction_id', greatest(%(compaction)s, (SELECT last_value FROM compaction_id)), false)",
        {"next": marks.txn_id, "lock": marks.lock_id, "compaction": marks.compaction_id},
    )
    _insert(
        pg,
        'next_write_ids (catalog, db, "table", next_write_id, known_since)',
        "text text text bigint",
        [(*name, next_id) for name, next_id in marks.write_ids.items()],
        "metastore_now()",
        'ON CONFLICT (catalog, db, "table") DO UPDATE SET next_write_id = EXCLUDED.next_write_id',
    )
    _insert(
        pg,
        'txns (id, state, type, "user", host, agent_info, started_at, last_heartbeat_at, ended_at, may_publish,'
        " abort_reason)",
        "bigint text smallint text text text",
        state.txns,
        "metastore_now(), metastore_now(), CASE WHEN c1 = 'aborted' THEN metastore_now() END, c1 = 'aborted',"
        " CASE WHEN c1 = 'aborted' THEN 'aborted by the Hive metastore that was here before' END",
    )
    _insert(pg, 'txn_write_ids (txn_id, catalog, db, "table", write_id)', "bigint text text text bigint", state.owners)
    _insert(
        pg,
        'txn_components (txn_id, catalog, db, "table", partition, operation, write_id)',
        "bigint text text text text text bigint",
        state.components,
    )
    _insert(
        pg,
        'locks (ext_id, int_id, txn_id, catalog, db, "table", partition, type, state, "user", host, agent_info,'
        " requested_at, last_heartbeat_at, acquired_at)",
        "bigint int bigint text text text text text text text text text",
        state.locks,
        "metastore_now(), CASE WHEN c2 = 0 THEN metastore_now() END,"
        " CASE WHEN c8 = 'acquired' THEN metastore_now() END",
    )
    for name, types, rows, more in (
        (
            'completed_txn_components (txn_id, catalog, db, "table", partition, write_id, update_delete, at)',
            "bigint text text text text bigint bool",
            state.completed,
            "metastore_now()",
        ),
        (
            'write_sets (txn_id, commit_id, catalog, db, "table", partition, operation)',
            "bigint bigint text text text text text",
            state.write_sets,
            "",
        ),
    ):
        pg.sql(f"DELETE FROM {name.split()[0]} WHERE txn_id < %s", (marks.txn_id,))
        _insert(pg, name, types, rows, more)


def _insert(
    pg: PgTx,
    into: str,
    types: str,
    rows: Sequence[Sequence[Any]],
    more: str = "",
    conflict: str = "ON CONFLICT DO NOTHING",
) -> None:
    if not rows:
        return
    kinds = types.split()
    names = [f"c{number}" for number in range(len(kinds))]
    arrays = ", ".join(f"%s::{kind}[]" for kind in kinds)
    chosen = ", ".join([*names, *([more] if more else [])])
    pg.sql(
        f"INSERT INTO {into} SELECT {chosen} FROM unnest({arrays}) AS s({', '.join(names)}) {conflict}",
        columns(rows, len(kinds)),
    )


class AdoptedState(NamedTuple):
    """The state from which a Hive metastore can go on; names have no catalog, which must be ``hive``."""

    marks: Marks
    open_txns: int
    compactions: int
    aborted: list[tuple[int, int, str, str]]
    owners: list[tuple[int, str, str, int]]
    components: list[tuple[int, str, str, str, str, int | None]]
    completed: list[tuple[int, str, str, str, int | None, bool]]


def select_kept(pg: PgTx) -> AdoptedState:
    """Read the state, with its marks locked."""
    marks = lock_marks(pg)
    [(open_txns,)] = pg.sql("SELECT count(*) FROM txns WHERE state = 'open'")
    [(compactions,)] = pg.sql("SELECT count(*) FROM compaction_queue WHERE state <> 'initiated'")
    aborted = "SELECT id FROM txns WHERE state = 'aborted'"
    return AdoptedState(
        marks,
        open_txns,
        compactions,
        pg.sql("SELECT id, type, \"user\", host FROM txns WHERE state = 'aborted' ORDER BY id"),
        pg.sql(f'SELECT txn_id, db, "table", write_id FROM txn_write_ids WHERE txn_id IN ({aborted}) ORDER BY 1, 2, 3'),
        pg.sql(
            'SELECT txn_id, db, "table", partition, operation, write_id FROM txn_components'
            f" WHERE txn_id IN ({aborted}) ORDER BY 1, 2, 3, 4, 5"
        ),
        pg.sql(
            'SELECT txn_id, db, "table", partition, write_id, update_delete FROM completed_txn_components'
            " ORDER BY 1, 2, 3, 4"
        ),
    )


class _Hive:
    """Statements with names as 4.x has them."""

    def __init__(self, cursor: Any, *, is_3: bool) -> None:
        self._cursor, self.is_3 = cursor, is_3

    def __call__(self, query: str) -> list[Any]:
        self._cursor.execute(query.replace('"', "") if self.is_3 else query)
        return list(self._cursor.fetchall())


@contextmanager
def _hive(url: str) -> Iterator[_Hive]:
    try:
        with closing(psycopg2.connect(url, connect_timeout=_CONNECT_S)) as connection:
            connection.set_session(isolation_level="REPEATABLE READ", readonly=True)
            with connection.cursor() as cursor:
                cursor.execute("""SELECT to_regclass('"TXNS"') IS NOT NULL, to_regclass('txns') IS NOT NULL""")
                [(is_4, is_3)] = cursor.fetchall()
                if not is_4 and not is_3:
                    raise InvalidInputError(
                        "The database has no table TXNS: it is not that of a Hive metastore 3.x or 4.x."
                    )
                yield _Hive(cursor, is_3=not is_4)
    except psycopg2.OperationalError as error:
        raise UnavailableError(f"The Hive metastore's database cannot be reached: {str(error).strip()}") from error
    except psycopg2.Error as error:
        raise InvalidInputError(
            f"The tables are not those of a Hive metastore 3.x or 4.x, or may not be read: {str(error).strip()}"
        ) from error


def _table(db: str, table: str | None) -> TableName:
    return TableName(DEFAULT_CATALOG, db.lower(), (table or "").lower())


def _object(db: str, table: str | None, partition: str | None) -> tuple[str, str, str, str]:
    return (*_table(db, table), canonical(partition) if partition else "")
