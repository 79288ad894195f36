"""Recent requests and compactions, by pool."""

from datetime import datetime

from metastore.compaction.queue.rules.requests import LOCATION
from metastore.compaction.queue.rules.scaling import PoolLoad
from metastore.db.engine import PgTx
from metastore.db.statements import Statements

_SQL = Statements(__file__)
_SELECT_LOADS = _SQL.text("select_loads")


def select_loads(pg: PgTx, since: datetime) -> list[PoolLoad]:
    """Return the load of each pool with requests that wait or are on record."""
    return [PoolLoad(*row) for row in pg.sql(_SELECT_LOADS, {"since": since, "dropped": LOCATION})]
