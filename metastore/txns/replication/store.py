"""Rows of replicated transactions: the target of each source, and the marks that replication leaves.

The catalog's parameters are touched here because they must change together with the transaction.
"""

from collections.abc import Collection, Sequence
from typing import Protocol

from metastore.db.arrays import columns
from metastore.db.engine import Database, PgTx
from metastore.ids import DatabaseName, TableName

INCOMPATIBLE = "repl.incompatible"
LAST_ID = "repl.last.id"


class Replayable(Protocol):
    """A request that may name its transaction by the source's id."""

    @property
    def txn_id(self) -> int:
        """The transaction; the source's id if ``replays``."""

    @property
    def repl_policy(self) -> str | None:
        """The replication policy."""

    @property
    def replays(self) -> bool:
        """True if the request repeats a call to the source warehouse."""


_TARGETS = """
SELECT m.policy, m.source_txn_id, m.target_txn_id
FROM repl_txn_map AS m JOIN unnest(%s::text[], %s::bigint[]) AS w(policy, source) ON m.policy = w.policy
     AND m.source_txn_id = w.source"""


def select_targets(db: Database, requests: Sequence[Replayable]) -> dict[tuple[str | None, int], int]:
    """Return the targets by (policy, source) of the requests that replay; a source without a mapping is absent."""
    wanted = [(request.repl_policy or "", request.txn_id) for request in requests if request.replays]
    rows = db.once(_TARGETS, ([policy for policy, _ in wanted], [source for _, source in wanted]))
    return {(policy, source): target for policy, source, target in rows}


def select_targets_of(db: Database, policy: str) -> list[tuple[int, int]]:
    """Return the sources of a policy with their targets, in the order of the sources."""
    sql = "SELECT source_txn_id, target_txn_id FROM repl_txn_map WHERE policy = %s ORDER BY source_txn_id"
    return [(source, target) for source, target in db.once(sql, (policy,))]


def lock_targets(pg: PgTx, policy: str, sources: Sequence[int]) -> list[int]:
    """Lock a policy and return the targets in the order of their sources.

    Only one replay of a policy runs at a time, until this PostgreSQL transaction ends. Serialises on: the policy
    (advisory lock).
    """
    pg.sql("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", (f"repl_txn_map {policy}",))
    targets = {source: target for _, source, target in pg.sql(_TARGETS, ([policy] * len(sources), list(sources)))}
    return [targets[source] for source in sources if source in targets]


def insert_targets(pg: PgTx, policy: str, sources: Sequence[int], first_target: int) -> None:
    """Map the sources, in order, to consecutive targets."""
    pg.sql(
        """INSERT INTO repl_txn_map (policy, source_txn_id, target_txn_id)
              SELECT %s, source, %s + place - 1 FROM unnest(%s::bigint[]) WITH ORDINALITY AS s(source, place)""",
        (policy, first_target, list(sources)),
    )


def delete_target(pg: PgTx, target: int) -> None:
    """Forget the mapping of a transaction that has ended."""
    pg.sql("DELETE FROM repl_txn_map WHERE target_txn_id = %s", (target,))


def flag_incompatible(pg: PgTx, policies: Collection[str]) -> None:
    """Record on the policies' databases that the target differs from the source: Hive then bootstraps anew.

    A policy is named after its database, with or without ``.*``.
    """
    names = [policy.split(".")[0].lower() for policy in policies]
    pg.sql(
        """UPDATE databases SET parameters = parameters || jsonb_build_object(%s::text, 'true')
              WHERE catalog = 'hive' AND name = ANY(%s)""",
        (INCOMPATIBLE, names),
    )


def update_last_id(
    pg: PgTx, database: DatabaseName, table: TableName | None, partitions: Sequence[str], last_id: int
) -> list[str]:
    """Record the position of replication on the database and the objects named below it.

    Return those that do not exist.
    """
    mark = f"parameters || jsonb_build_object('{LAST_ID}', %s::text)"
    missing = []
    if not pg.sql(
        f"UPDATE databases SET parameters = {mark} WHERE catalog = %s AND name = %s RETURNING id",
        (str(last_id), *database),
    ):
        missing.append(f"database {database}")
    if table is not None:
        updated = pg.sql(
            f"UPDATE tables SET parameters = {mark} WHERE catalog = %s AND db = %s AND name = %s RETURNING id",
            (str(last_id), *table),
        )
        if not updated:
            missing.append(f"table {table}")
        elif partitions:
            pg.sql(
                f"UPDATE partitions SET parameters = {mark} WHERE table_id = %s AND name = ANY(%s)",
                (str(last_id), updated[0][0], list(partitions)),
            )
    return missing


def update_table_parameter(pg: PgTx, table_id: int, key: str, value: str) -> bool:
    """Change a parameter that the table has; return whether it has it."""
    return bool(
        pg.sql(
            """
        UPDATE tables SET parameters = parameters || jsonb_build_object(%(key)s::text, %(value)s::text)
        WHERE id = %(id)s AND parameters ? %(key)s RETURNING id""",
            {"id": table_id, "key": key, "value": value},
        )
    )


def select_transactional(pg: PgTx, names: Collection[TableName]) -> set[TableName]:
    """Return those of the tables that the catalog knows as transactional."""
    catalogs, dbs, tables = columns(names, 3)
    rows = pg.sql(
        """
        SELECT t.catalog, t.db, t.name FROM tables AS t
        JOIN unnest(%s::text[], %s::text[], %s::text[]) AS w(catalog, db, name)
             ON t.catalog = w.catalog AND t.db = w.db AND t.name = w.name
        WHERE is_transactional(t.parameters)""",
        (catalogs, dbs, tables),
    )
    return {TableName(*row) for row in rows}
