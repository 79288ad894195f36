"""A process that only compacts. It serves no calls, runs no other loop, and leaves the schema to the servers."""

import dataclasses

from metastore.app.process import VERSION, Process, environment_of_jobs
from metastore.config import Settings
from metastore.db import migrate
from metastore.errors import UnavailableError
from metastore.telemetry.logs import get_logger
from metastore.web.health import HealthPart

log = get_logger(__name__)


class WorkerApp(Process):
    """A worker."""

    PARTS = ("database", "schema", "loops")

    def __init__(self, settings: Settings, uri: str) -> None:
        """``uri``: the servers from which the jobs take their snapshots."""
        alone = dataclasses.replace(settings.compaction, initiator_on=False, cleaner_on=False)
        super().__init__(dataclasses.replace(settings, compaction=alone))
        self.thrift_uri = uri

    def _start_parts(self) -> None:
        self._start_web()
        url = self._start_postgres()
        self.services = self._compose(self._start_database(url, self._require_schema(url)))
        self._start_loops(url, self.compaction_loops(environment_of_jobs(self.settings.tls, by_name=True)))
        log.info(
            "working",
            thrift=self.thrift_uri,
            http=self.http_uri,
            threads=self.settings.compaction.worker_threads,
            version=VERSION,
        )

    def _require_schema(self, url: str) -> str:
        usable = migrate.usable(url)
        if usable.database < usable.release:
            raise UnavailableError(
                f"The database has schema version {usable.database or 'none'}, this worker needs {usable.release}. "
                "Start a server of the same release first, or run `metastore db upgrade`."
            )
        self.health.report("schema", HealthPart(ready=True))
        return usable.schema
