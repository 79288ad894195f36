"""What was requested and done of late, by pool."""

from datetime import datetime

from metastore.compaction.forecasting.rules import PoolLoad
from metastore.compaction.queue.rules.requests import LOCATION
from metastore.db.engine import PgTx
from metastore.db.statements import Statements

_SQL = Statements(__file__)

_SELECT_LOADS = _SQL.text("select_loads")


def select_loads(pg: PgTx, since: datetime) -> list[PoolLoad]:
    """The pools with requests that wait or are on record."""
    return [
        PoolLoad(
            pool,
            waiting,
            working,
            None if oldest is None else pg.now - oldest,
            arrived,
            done,
            None if each is None else float(each),
        )
        for pool, waiting, working, oldest, arrived, done, each in pg.sql(
            _SELECT_LOADS, {"since": since, "dropped": LOCATION}
        )
    ]
