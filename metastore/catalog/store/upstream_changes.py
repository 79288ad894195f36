"""Rows of ``upstream_changes``, and the effects of these changes on the history that is kept here.

Rule: forgetting goes by the note's mark and instant, so that it may be done late, and twice: the history of a later
table of the name stays.
"""

from collections.abc import Collection, Sequence

from metastore.catalog.rules.upstream_changes import ChangeKind, Note
from metastore.catalog.store.acid_history import rename_readers
from metastore.db.arrays import bigints
from metastore.db.engine import Database, PgTx, Row
from metastore.db.statements import Statements
from metastore.ids import DatabaseName, TableName
from metastore.txns.remembering.store import removing, rename_table

_SQL = Statements(__file__)

_OBJECT = 'catalog = %(catalog)s AND db = %(db)s AND "table" = %(table)s'
_NOTE = 'id, kind, catalog, db, "table", identity, mark, noted_at, partition, new_db, new_table, new_partition'
_BY_PARTITION = ("txn_components", "completed_txn_components", "compaction_queue", "completed_compactions")

_COPY_OWNERS = _SQL.text("copy_owners", of_object=_OBJECT)


def insert_notes(pg: PgTx, notes: Sequence[Note]) -> list[int]:
    """Record the changes that are about to happen; return the notes' ids."""
    return [
        pg.sql(
            'INSERT INTO upstream_changes (kind, catalog, db, "table", identity, mark, noted_at, partition, new_db,'
            " new_table, new_partition) VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s) RETURNING id",
            (
                note.kind.value,
                *note.table,
                note.identity,
                note.mark,
                note.noted_at,
                note.partition,
                note.new_table.db if note.new_table else None,
                note.new_table.table if note.new_table else None,
                note.new_partition,
            ),
        )[0][0]
        for note in notes
    ]


def lock_notes(pg: PgTx, ids: Collection[int]) -> list[Note]:
    """Return the notes, locked against every other process."""
    return [
        _note(row)
        for row in pg.sql(
            f"SELECT {_NOTE} FROM upstream_changes WHERE id = ANY (%s::bigint[]) ORDER BY id FOR UPDATE",
            (bigints(ids),),
        )
    ]


def claim_next(pg: PgTx, after: int) -> Note | None:
    """Return the next note on which no process works."""
    rows = pg.sql(
        f"SELECT {_NOTE} FROM upstream_changes WHERE id > %s ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED", (after,)
    )
    return _note(rows[0]) if rows else None


def delete_notes(pg: PgTx, ids: Collection[int]) -> None:
    """Delete the notes of settled changes."""
    pg.sql("DELETE FROM upstream_changes WHERE id = ANY (%s::bigint[])", (bigints(ids),))


def is_noted(pg: PgTx, table: TableName) -> bool:
    """Return True if a change of the table is in progress."""
    return bool(
        pg.sql(
            f"SELECT 1 FROM upstream_changes WHERE {_OBJECT} OR (catalog = %(catalog)s AND new_db = %(db)s"
            " AND new_table = %(table)s) LIMIT 1",
            table._asdict(),
        )
    )


def select_mark(db: Database | PgTx, table: TableName) -> int | None:
    """Return the table's next write id; None if it has no history here."""
    query = f"""SELECT coalesce((SELECT next_write_id FROM next_write_ids WHERE {_OBJECT}), 1)
        WHERE EXISTS (SELECT FROM next_write_ids WHERE {_OBJECT}) OR EXISTS (SELECT FROM txn_components WHERE {_OBJECT})
           OR EXISTS (SELECT FROM completed_txn_components WHERE {_OBJECT})"""
    rows = db.once(query, table._asdict()) if isinstance(db, Database) else db.sql(query, table._asdict())
    return rows[0][0] if rows else None


def select_tables(pg: PgTx, database: DatabaseName) -> list[TableName]:
    """Return the tables of a database that have history here."""
    which = "WHERE catalog = %(catalog)s AND db = %(db)s AND \"table\" <> ''"
    rows = pg.sql(
        f'SELECT catalog, db, "table" FROM next_write_ids {which} UNION'
        f' SELECT catalog, db, "table" FROM txn_components {which} UNION'
        f' SELECT catalog, db, "table" FROM completed_txn_components {which} ORDER BY 1, 2, 3',
        database._asdict(),
    )
    return [TableName(*row) for row in rows]


def select_partitions(pg: PgTx, table: TableName) -> list[str]:
    """Return the partitions of a table that have history here."""
    rows = pg.sql(
        " UNION ".join(f"SELECT partition FROM {name} WHERE {_OBJECT} AND partition <> ''" for name in _BY_PARTITION)
        + " ORDER BY 1",
        table._asdict(),
    )
    return [name for (name,) in rows]


def forget(pg: PgTx, note: Note) -> None:
    """Forget the history that the table, or the partition, had when the note was made."""
    where = {**note.table._asdict(), "mark": note.mark, "at": note.noted_at, "partition": note.partition}
    partition = " AND partition = %(partition)s" if note.partition else ""
    statements = [
        f"DELETE FROM txn_components WHERE {_OBJECT}{partition} AND write_id < %(mark)s",
        removing(
            f"DELETE FROM completed_txn_components WHERE {_OBJECT}{partition}"
            " AND CASE WHEN write_id IS NULL THEN at <= %(at)s ELSE write_id < %(mark)s END"
        ),
        f"DELETE FROM compaction_queue WHERE {_OBJECT}{partition} AND enqueued_at <= %(at)s",
        f"DELETE FROM completed_compactions WHERE {_OBJECT}{partition} AND enqueued_at <= %(at)s",
    ]
    if not note.partition:
        statements += [
            (
                "UPDATE next_write_ids SET first_write_id = greatest(first_write_id, %(mark)s), purged_write_id ="
                f" greatest(purged_write_id, %(mark)s - 1), known_since = metastore_now() WHERE {_OBJECT}"
            ),
            f"DELETE FROM txn_write_ids WHERE {_OBJECT} AND write_id < %(mark)s",
            f"DELETE FROM write_id_times WHERE {_OBJECT} AND latest <= %(at)s",
        ]
    pg.sql("; ".join(statements), where)


def copy_owners(pg: PgTx, note: Note) -> None:
    """Copy owners before a rename: the new name's readers must know the old name's open and aborted writes at once."""
    pg.sql(_COPY_OWNERS, _renaming(note))


def lock_ids(pg: PgTx, note: Note) -> None:
    """Keep write ids of either name from being allocated until this PostgreSQL transaction ends."""
    pg.sql(
        'SELECT 1 FROM next_write_ids WHERE catalog = %(catalog)s AND (db, "table") IN ((%(db)s, %(table)s),'
        ' (%(new_db)s, %(new_table)s)) ORDER BY catalog, db, "table" FOR UPDATE',
        _renaming(note),
    )


def drop_copies(pg: PgTx, note: Note) -> None:
    """Delete the copies after a rename that did not happen; the new name keeps its mark, which does no harm."""
    pg.sql(
        'DELETE FROM txn_write_ids WHERE catalog = %(catalog)s AND db = %(new_db)s AND "table" = %(new_table)s'
        " AND write_id < %(mark)s",
        _renaming(note),
    )


def rename(pg: PgTx, note: Note) -> None:
    """Let the history follow the table's new name, including ids that were allocated after the copy was made."""
    drop_copies(pg, note)
    taken = (
        'SELECT FROM {0} AS n WHERE n.catalog = o.catalog AND n.db = %(new_db)s AND n."table" = %(new_table)s AND {1}'
    )
    new = 'SET db = %(new_db)s, "table" = %(new_table)s'
    unclaimed = {"txn_write_ids": "(n.write_id = o.write_id OR n.txn_id = o.txn_id)", "materialization_locks": "true"}
    statements = [
        f"UPDATE {name} AS o {new} WHERE {_OBJECT} AND NOT EXISTS ({taken.format(name, same)})"
        for name, same in unclaimed.items()
    ]
    statements += [
        f"UPDATE {name} {new} WHERE {_OBJECT}"
        for name in (
            "txn_components",
            "completed_txn_components",
            "compaction_queue",
            "completed_compactions",
            "write_id_times",
            "write_sets",
            "locks",
        )
    ]
    statements += [
        (
            "UPDATE next_write_ids AS n SET next_write_id = greatest(n.next_write_id, o.next_write_id)"
            ' FROM next_write_ids AS o WHERE o.catalog = %(catalog)s AND o.db = %(db)s AND o."table" = %(table)s'
            ' AND n.catalog = o.catalog AND n.db = %(new_db)s AND n."table" = %(new_table)s'
        ),
        (
            "UPDATE next_write_ids SET first_write_id = next_write_id, purged_write_id = next_write_id - 1,"
            f" known_since = metastore_now() WHERE {_OBJECT}"
        ),
    ]
    pg.sql("; ".join(statements), _renaming(note))
    rename_readers(pg, note.table, _new_name(note))
    rename_table(pg, note.table, _new_name(note))


def _renaming(note: Note) -> dict[str, object]:
    new = _new_name(note)
    return {**note.table._asdict(), "new_db": new.db, "new_table": new.table, "mark": note.mark}


def _new_name(note: Note) -> TableName:
    if note.new_table is None:
        raise ValueError(f"{note} renames no table")
    return note.new_table


def _note(row: Row) -> Note:
    note_id, kind, catalog, db, table, identity, mark, noted_at, partition, new_db, new_table, new_partition = row
    return Note(
        ChangeKind(kind),
        TableName(catalog, db, table),
        identity,
        mark,
        noted_at,
        partition,
        TableName(catalog, new_db, new_table) if new_table else None,
        new_partition or "",
        note_id,
    )
