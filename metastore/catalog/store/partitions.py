"""Rows of ``partitions`` and ``partition_descriptors``.

Reads take ``run``: ``pg.sql`` inside a PostgreSQL transaction, or ``db.once`` where one statement is all there is. A
descriptor travels once per answer, with the first partition that has it.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from metastore.catalog.model import Json, Table
from metastore.catalog.rules import descriptors
from metastore.catalog.rules.partitions import Doomed, Partition
from metastore.catalog.store.jsonb import to_json
from metastore.db import arrays
from metastore.db.engine import PgTx, Row
from metastore.db.pieces import UNLIMITED, Run, Sizes
from metastore.db.wires import TextList
from metastore.ids import TableName
from metastore.places import store as places

NAMES = Sizes(130_000, 50_000, 130_000)
"""The sizes of pieces of names: 100,000 are 3 MB. A longer list needs a count, and its first piece once more."""
_BATCH = 2000
"""Partitions that are written in one statement."""
_COLUMNS = 'p.name, p."values", p.create_time, p.last_access_time, p.location, p.parameters, p.write_id, p.digest'
_JOINED = "partitions p LEFT JOIN partition_descriptors d USING (table_id, digest)"
_FIRST_SD = "CASE WHEN row_number() OVER (PARTITION BY p.digest ORDER BY p.name) = 1 THEN d.sd END"
_ROWS = (
    'r (name text, "values" jsonb, create_time int, last_access_time int, location text, parameters jsonb, '
    "write_id bigint, digest text)"
)
_VALUES_OF_ROW = 'ARRAY(SELECT jsonb_array_elements_text(r."values"))'
_NAMED = "name = ANY(%s::text[])"
_BY_VALUES = f"""
    SELECT t.id, t.partition_keys, t.location IS NOT NULL, {_COLUMNS}, d.sd FROM tables t LEFT JOIN ({_JOINED})
    ON p.table_id = t.id AND p.name = (
        SELECT string_agg(lower(k.field ->> 'name') || '=' || v.value, '/' ORDER BY n)
        FROM jsonb_array_elements(t.partition_keys) WITH ORDINALITY k (field, n)
        JOIN unnest(%s::text[]) WITH ORDINALITY v (value, n) USING (n))
    WHERE t.catalog = %s AND t.db = %s AND t.name = %s"""


def partitions_of(rows: Iterable[Row]) -> list[Partition]:
    """Return the partitions that rows of ``_COLUMNS`` and a descriptor hold, in order."""
    known: dict[str, Json] = {}
    partitions = []
    for name, values, created, accessed, location, parameters, write_id, digest, sd in rows:
        if sd is not None:
            known[digest] = sd
        partitions.append(Partition(name, values, known.get(digest), location, parameters, created, accessed, write_id))
    return partitions


def select_by_values(run: Run, table: TableName, escaped: Sequence[str]) -> tuple[list[Json], Partition | None] | None:
    """Return a table's partition keys and its partition with these escaped values, in one statement.

    None without the table. The name is put together here without escaping the keys; a caller whose keys need it asks
    again by name.
    """
    rows = run(_BY_VALUES, (list(escaped), *table))
    if not rows:
        return None
    _, keys, _, *partition = rows[0]
    return keys, partitions_of([tuple(partition)])[0] if partition[0] is not None else None


def select_partitions(
    run: Run, table: Table, condition: str = "true", parameters: Sequence[Any] = (), limit: int = UNLIMITED
) -> list[Partition]:
    """Return the table's partitions that meet a condition on ``p``, by name."""
    return partitions_of(
        run(
            f"SELECT {_COLUMNS}, {_FIRST_SD} FROM {_JOINED} WHERE p.table_id = %s AND {condition} "
            "ORDER BY p.name LIMIT %s",
            (table.id, *parameters, None if limit < 0 else limit),
        )
    )


def select_names(
    run: Run, table: Table, condition: str = "true", parameters: Sequence[Any] = (), limit: int = UNLIMITED
) -> list[str]:
    """Return the names of the table's partitions that meet a condition on ``p``, in order."""
    return [
        name
        for (name,) in run(
            f"SELECT p.name FROM partitions p WHERE p.table_id = %s AND {condition} ORDER BY p.name LIMIT %s",
            (table.id, *parameters, None if limit < 0 else limit),
        )
    ]


def listed_names(table: Table, condition: str = "true", parameters: Sequence[Any] = ()) -> TextList:
    """Return the names that ``select_names`` returns, as bytes for clients."""
    return TextList(f"partitions p WHERE p.table_id = %s AND {condition}", (table.id, *parameters), "p.name")


def select_values(
    run: Run, table: Table, condition: str = "true", parameters: Sequence[Any] = ()
) -> list[tuple[str, list[str]]]:
    """Return name and values of the table's partitions that meet a condition on ``p``, by name."""
    rows = run(
        f'SELECT p.name, p."values" FROM partitions p WHERE p.table_id = %s AND {condition} ORDER BY p.name',
        (table.id, *parameters),
    )
    return [(name, values) for name, values in rows]


def count_partitions(
    run: Run, table: Table, condition: str = "true", parameters: Sequence[Any] = (), limit: int = UNLIMITED
) -> int:
    """Count the table's partitions that meet a condition on ``p``, up to the limit."""
    [(count,)] = run(
        f"SELECT count(*) FROM (SELECT FROM partitions p WHERE p.table_id = %s AND {condition} LIMIT %s) AS found",
        (table.id, *parameters, None if limit < 0 else limit),
    )
    return int(count)


def lock_partitions(pg: PgTx, table: Table, names: Sequence[str]) -> list[Partition]:
    """Return the named partitions, each held against change until COMMIT, by name."""
    named = arrays.literal(names)
    pg.sql(f"SELECT FROM partitions WHERE table_id = %s AND {_NAMED} ORDER BY name FOR UPDATE", (table.id, named))
    return select_partitions(pg.sql, table, f"p.{_NAMED}", (named,))


def lock_doomed(pg: PgTx, table: Table, names: Sequence[str]) -> list[Doomed]:
    """Return and lock partitions as ``lock_partitions`` does, with only the fields that a drop needs."""
    rows = pg.sql(
        "SELECT name, location, parameters ->> 'is_archived', parameters ->> 'original_location' FROM partitions "
        f"WHERE table_id = %s AND {_NAMED} ORDER BY name FOR UPDATE",
        (table.id, arrays.literal(names)),
    )
    return [Doomed(*row) for row in rows]


def insert_partitions(pg: PgTx, table: Table, partitions: Sequence[Partition]) -> set[str]:
    """Add partitions, some thousand in a statement; return the names that were free."""
    digests = insert_descriptors(pg, table, partitions)
    rows = [row for some in _batches(partitions) for row in _insert(pg, table, some, digests)]
    return {name for (name,) in rows}


def _insert(pg: PgTx, table: Table, partitions: Sequence[Partition], digests: Mapping[int, str]) -> list[Row]:
    return pg.sql(
        'INSERT INTO partitions (table_id, name, "values", create_time, last_access_time, location, parameters, '
        f"write_id, digest) SELECT %s, r.name, {_VALUES_OF_ROW}, r.create_time, r.last_access_time, r.location, "
        "r.parameters, r.write_id, r.digest "
        f"FROM jsonb_to_recordset(%s) AS {_ROWS} ORDER BY r.name ON CONFLICT DO NOTHING RETURNING name",
        (table.id, _as_rows(partitions, digests)),
    )


def update_partitions(pg: PgTx, table: Table, partitions: Sequence[Partition]) -> None:
    """Overwrite all fields of locked partitions except name and values, some thousand partitions in a statement."""
    digests = insert_descriptors(pg, table, partitions)
    for some in _batches(partitions):
        pg.sql(
            "UPDATE partitions p SET create_time = r.create_time, last_access_time = r.last_access_time, "
            "location = r.location, "
            "parameters = r.parameters, write_id = r.write_id, digest = r.digest "
            f"FROM jsonb_to_recordset(%s) AS {_ROWS} WHERE p.table_id = %s AND p.name = r.name",
            (_as_rows(some, digests), table.id),
        )


def update_name(pg: PgTx, table: Table, old: str, new: Partition) -> None:
    """Give a locked partition another name, with its statistics."""
    pg.sql(
        'UPDATE partitions SET name = %s, "values" = %s WHERE table_id = %s AND name = %s; '
        "UPDATE column_statistics SET partition = %s WHERE table_id = %s AND partition = %s",
        (new.name, list(new.values), table.id, old, new.name, table.id, old),
    )


def delete_partitions(pg: PgTx, table: Table, names: Sequence[str]) -> None:
    """Remove partitions with their statistics."""
    pg.sql(
        "DELETE FROM column_statistics WHERE table_id = %s AND partition = ANY(%s::text[]); "
        f"DELETE FROM partitions WHERE table_id = %s AND {_NAMED}",
        (table.id, arrays.literal(names)) * 2,
    )


def delete_column_statistics(pg: PgTx, table: Table, columns: Sequence[tuple[str, str]]) -> None:
    """Forget the statistics of (partition, column) pairs."""
    if columns:
        partitions, names = zip(*columns, strict=True)
        pg.sql(
            'DELETE FROM column_statistics WHERE table_id = %s AND (partition, "column") IN '
            "(SELECT * FROM unnest(%s::text[], %s::text[]))",
            (table.id, list(partitions), list(names)),
        )


def insert_descriptors(pg: PgTx, table: Table, partitions: Iterable[Partition]) -> dict[int, str]:
    """Store every descriptor that is not stored yet; return the digest of each by the identity of the object."""
    by_object = {id(partition.sd): partition.sd for partition in partitions if partition.sd is not None}
    digests = {key: descriptors.digest(sd) for key, sd in by_object.items()}
    distinct = {digests[key]: sd for key, sd in by_object.items()}
    if distinct:
        pg.sql(
            "INSERT INTO partition_descriptors (table_id, digest, sd) SELECT %s, key, value FROM jsonb_each(%s) "
            "ORDER BY key ON CONFLICT DO NOTHING",
            (table.id, to_json(distinct)),
        )
    return digests


def select_shared_locations(pg: PgTx, table: Table, locations: Sequence[str]) -> set[str]:
    """Return the locations that are in use by partitions of the table."""
    return {
        location
        for (location,) in pg.sql(
            "SELECT place FROM unnest(%s::text[]) AS l (place) "
            f"WHERE EXISTS (SELECT FROM partitions WHERE table_id = %s AND {places.at('location', 'place')})",
            (list(locations), table.id),
        )
    }


def _batches(partitions: Sequence[Partition]) -> Iterator[Sequence[Partition]]:
    """Yield batches in the order of names, in which all callers lock.

    As text, partitions take several times the memory.
    """
    ordered = sorted(partitions, key=lambda partition: partition.name)
    return (ordered[at : at + _BATCH] for at in range(0, len(ordered), _BATCH))


def _as_rows(partitions: Iterable[Partition], digests: Mapping[int, str]) -> str:
    return to_json(
        [
            {
                "name": p.name,
                "values": list(p.values),
                "create_time": p.create_time,
                "parameters": p.parameters,
                "last_access_time": p.last_access_time,
                "location": p.location,
                "write_id": p.write_id,
                "digest": digests.get(id(p.sd)),
            }
            for p in partitions
        ]
    )
