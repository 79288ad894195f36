"""Forecasts for operators, and for who adds and removes Workers."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta

from metastore.compaction.forecasting import store
from metastore.compaction.forecasting.rules import Forecast, forecast
from metastore.config.compaction import stored_pool
from metastore.db.engine import Database

WINDOW = timedelta(hours=1)


@dataclass(frozen=True)
class ForecastingService:
    """Foretells from what is on record."""

    db: Database

    def forecast(self, window: timedelta = WINDOW) -> list[Forecast]:
        """By pool; ``window``: above zero."""
        with self.db.begin(durable=False) as pg:
            return [forecast(load, window) for load in store.select_loads(pg, pg.now - window)]

    def workers_wanted(self, pools: Iterable[str], limits: Mapping[str, int]) -> int:
        """Workers that would be enough for some pools; of nobody else's, and of each at most its limit."""
        wanted = {stored_pool(each.load.pool): each.wanted for each in self.forecast()}
        return sum(min(wanted.get(pool, 0), limits.get(pool, wanted.get(pool, 0))) for pool in set(pools))
