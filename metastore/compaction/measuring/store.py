"""Counts and ages, in one statement."""

from metastore.db.engine import PgTx
from metastore.db.statements import Statements
from metastore.txns.core.rules import TxnType

_SQL = Statements(__file__)

_SELECT_MEASURES = _SQL.text("select_measures", replication=int(TxnType.REPL_CREATED))


def select_measures(pg: PgTx, many_aborts: int) -> list[tuple[str, str, float]]:
    """(what, of which, how much). ``many_aborts``: from how many aborted transactions on an entity counts."""
    return [
        (what, which, float(value))
        for what, which, value in pg.sql(_SELECT_MEASURES, {"now": pg.now, "many": many_aborts})
    ]
