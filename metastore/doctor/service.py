"""The doctor's round: ask PostgreSQL, look at the warehouse and the planner, judge."""

from collections.abc import Mapping
from datetime import UTC, datetime

from metastore.config import Settings
from metastore.config.security import exposure
from metastore.db.engine import Database
from metastore.doctor import store
from metastore.doctor.rules import Facts, Finding, findings
from metastore.errors import InvalidInputError


def examine(
    db: Database, settings: Settings, schemas: tuple[str, str], unwritable: Mapping[str, str], planner: str
) -> list[Finding]:
    """Return the findings, worst first. ``schemas``: versions of the database and of the release; rest: see `Facts`."""
    state = store.select_state(db)
    clock = datetime.now(UTC) - state.now  # noqa: TID251 - the two clocks are compared
    return findings(
        Facts(
            version=state.version,
            settings=state.settings,
            connections=state.connections,
            most_connections=state.most_connections,
            commit=store.time_of_commit(db),
            clock=clock,
            late_replicas=store.select_late_replicas(db),
            dead_rows=store.select_dead_rows(db),
            long_snapshot=store.select_long_snapshot(db),
            led=store.select_led(db),
            schema=schemas[0],
            release_schema=schemas[1],
            oldest_txn=store.select_oldest_txn(db),
            waiting=store.select_waiting(db),
            queue=store.select_queue(db),
            failed_compactions=store.select_failed(db),
            many_deltas=store.select_many_deltas(db),
            exposed=_exposed(settings),
            unwritable=unwritable,
            planner=planner,
        )
    )


def _exposed(settings: Settings) -> str:
    try:
        return exposure(settings.server.host, settings.tls, settings.identity)
    except InvalidInputError as error:  # A server with these settings would not start.
        return str(error)
