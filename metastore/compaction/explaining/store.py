"""Who is open, with what they need of a table, and what compactions took before."""

from metastore.compaction.cleaning.rules import DeclaredReading, OpenTxn
from metastore.compaction.cleaning.store import READING
from metastore.compaction.explaining.rules import Holder
from metastore.db.engine import PgTx
from metastore.db.statements import Statements
from metastore.ids import TableName

_SQL = Statements(__file__)

_SELECT_HOLDERS = _SQL.text("select_holders", reading=READING)


def select_holders(pg: PgTx, table: TableName) -> list[Holder]:
    """Every open transaction, oldest first, with what it needs and writes of the table."""
    return [
        Holder(OpenTxn(txn_id, user, host, DeclaredReading.of(*marks)), *rest)
        for txn_id, user, host, marks, *rest in pg.sql(_SELECT_HOLDERS, table._asdict())
    ]
