"""The command ``metastore worker``: a process that only compacts; any number, on any host."""

from pathlib import Path

import click

from metastore.cli import lifecycle
from metastore.cli.connected import uri_option
from metastore.cli.options import ready_file_option, settings_of, settings_options
from metastore.client.client import DEFAULT_URI


@click.command()
@uri_option
@click.option("--database-url", metavar="URL", help="The PostgreSQL of the metastore.")
@click.option(
    "--http-port", metavar="N", type=int, help="Port of /metrics, /livez and /readyz; 0: a free one. Default: 9084."
)
@click.option("--warehouse", metavar="URI", help="Directory of managed tables, as the servers have it.")
@settings_options
@ready_file_option
def worker(
    uri: str | None,
    database_url: str | None,
    http_port: int | None,
    warehouse: str | None,
    files: tuple[Path, ...],
    assignments: tuple[str, ...],
    ready_file: Path | None,
) -> None:
    """Run a process that only compacts.

    It claims compactions and runs their Spark jobs; at SIGTERM it hands back what is not finished.

    Requests are claimed from the database; jobs take their snapshots from the metastore at --uri. A worker that dies
    loses its claim after metastore.compactor.worker.lease, and another begins anew.
    """
    stopping = lifecycle.stop_signals()
    settings = settings_of(
        files,
        assignments,
        metastore__http__port=http_port,
        metastore__database__url=database_url,
        hive__metastore__warehouse__dir=warehouse,
    )

    from metastore.telemetry import logs

    logs.configure(settings.log.level, settings.log.format)
    lost = lifecycle.lost_threads(stopping, logs.get_logger(__name__))
    if ready_file:
        ready_file.unlink(missing_ok=True)

    from metastore.app import WorkerApp

    lifecycle.run(WorkerApp(settings, uri or DEFAULT_URI), stopping, lost, ready_file)
