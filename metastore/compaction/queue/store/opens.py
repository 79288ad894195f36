"""Opens of tables: a sum in which an open counts half after each `HALF_LIFE_OF_OPENS` (ADR 74)."""

from collections.abc import Collection, Mapping
from datetime import timedelta
from math import log

from metastore.db.engine import Database, PgTx
from metastore.db.statements import Statements
from metastore.ids import TableName

HALF_LIFE_OF_OPENS = timedelta(hours=6)
FORGOTTEN_AFTER = 20 * HALF_LIFE_OF_OPENS
"""The time without an open after which a million of them count as one."""
_HOURLY = log(2) * timedelta(hours=1) / HALF_LIFE_OF_OPENS
_SQL = Statements(__file__)
_UPSERT = _SQL.text("upsert_opens")
_FORGET = _SQL.text("delete_forgotten")
_SELECT = _SQL.text("select_opens")


def upsert_opens(db: Database, counts: Mapping[TableName, int]) -> None:
    """Add opens of tables that have write ids. The rows are locked in their order, so that replicas do not deadlock."""
    catalogs, dbs, tables = zip(*counts, strict=True)
    db.once(
        _UPSERT,
        {
            "catalogs": list(catalogs),
            "dbs": list(dbs),
            "tables": list(tables),
            "opens": [float(count) for count in counts.values()],
            "half_life": HALF_LIFE_OF_OPENS.total_seconds(),
        },
        durable=False,
    )


def delete_forgotten(db: Database) -> None:
    """Remove tables that are not opened any more. Locked rows wait for the next time."""
    db.once(_FORGET, {"forgotten": FORGOTTEN_AFTER}, durable=False)


def select_opens(pg: PgTx, tables: Collection[TableName]) -> dict[TableName, float]:
    """Return the opens of tables in an hour: the constant rate that would give the present sum."""
    rows = pg.sql(_SELECT, {"tables": tuple(tables), "half_life": HALF_LIFE_OF_OPENS.total_seconds()})
    return dict.fromkeys(tables, 0.0) | {TableName(*name): float(opens) * _HOURLY for *name, opens in rows}
