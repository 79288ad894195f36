"""The command ``metastore planner``: a process that plans reads and writes for engines; any number, on any host."""

from pathlib import Path

import click

from metastore.cli import lifecycle
from metastore.cli.connected import uri_option
from metastore.cli.options import ready_file_option, settings_of, settings_options
from metastore.config.security import exposure


@click.command()
@uri_option
@click.option("--host", metavar="H", help="Address to listen on.")
@click.option("--port", metavar="N", type=int, help="Port to listen on; 0: a free one.  [default: 0]")
@settings_options
@ready_file_option
@click.option("--inherited", type=int, hidden=True, help="Descriptor of a socket that listens already.")
def planner(
    uri: str | None,
    host: str | None,
    port: int | None,
    files: tuple[Path, ...],
    assignments: tuple[str, ...],
    ready_file: Path | None,
    inherited: int | None,
) -> None:
    """Run a process that plans scans and writes of ACID tables for Spark.

    Engines find the planner beside their metastore by themselves; for another one, set metastore.planner.uri there. It
    needs the table's files and the metastore at --uri, and keeps nothing: any number of them may run.
    """
    stopping = lifecycle.stop_signals()
    settings = settings_of(files, assignments, hive__metastore__thrift__bind__host=host, metastore__planner__port=port)
    exposure(
        settings.server.host, settings.tls, settings.identity
    )  # A wrong combination is refused before anything is begun.

    from metastore.telemetry import logs

    logs.configure(settings.log.level, settings.log.format)
    lost = lifecycle.lost_threads(stopping, logs.get_logger(__name__))
    if inherited is not None:
        ready_file = None  # The variable is meant for the server that started this process.
    if ready_file:
        ready_file.unlink(missing_ok=True)

    from metastore.planner.planner_process import PlannerProcess

    if inherited is not None:
        lifecycle.end_with_input(stopping)
    lifecycle.run(PlannerProcess(settings, uri, inherited), stopping, lost, ready_file)
