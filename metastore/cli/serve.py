"""The command ``metastore serve``: the process that clients talk to."""

import dataclasses
from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from pathlib import Path

import click

from metastore.cli import lifecycle
from metastore.cli.options import place_options, ready_file_option, settings_of, settings_options
from metastore.config.security import exposure


@click.command()
@click.option("--host", metavar="H", help="Address to listen on.")
@click.option("--port", metavar="N", type=int, help="Thrift port; 0: a free one. Default: 9083.")
@click.option(
    "--http-port", metavar="N", type=int, help="Port of /metrics, /livez and /readyz; 0: a free one. Default: 9084."
)
@place_options
@click.option(
    "--warehouse", metavar="URI", help="Directory of managed tables. Default: `warehouse` in the data directory."
)
@settings_options
@click.option(
    "--processes",
    metavar="N",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Processes that share the port; each answers on an HTTP port of its own, from --http-port on.",
)
@click.option("--process", type=int, hidden=True, help="Which of the processes that share the port this is.")
@click.option("--no-loops", is_flag=True, help="Run no background loops here: no reaper, Initiator, Worker, Cleaner.")
@ready_file_option
def serve(
    host: str | None,
    port: int | None,
    http_port: int | None,
    data_dir: Path,
    database_url: str | None,
    warehouse: str | None,
    files: tuple[Path, ...],
    assignments: tuple[str, ...],
    processes: int,
    process: int | None,
    no_loops: bool,
    ready_file: Path | None,
) -> None:
    """Run the metastore.

    At SIGTERM it finishes the calls in flight and exits with 0.
    """
    stopping = lifecycle.stop_signals()
    settings = settings_of(
        files,
        assignments,
        hive__metastore__thrift__bind__host=host,
        hive__metastore__port=port,
        metastore__http__port=http_port,
        metastore__database__url=database_url,
        hive__metastore__warehouse__dir=warehouse,
    )

    exposure(
        settings.server.host, settings.tls, settings.identity
    )  # A wrong combination is refused before anything is begun.

    from metastore.telemetry import logs

    logs.configure(settings.log.level, settings.log.format)

    lost = lifecycle.lost_threads(stopping, logs.get_logger(__name__))
    if ready_file:
        ready_file.unlink(missing_ok=True)  # A server that was killed left it.
    if processes > 1:
        from metastore.cli.processes import Processes

        options = _repeated(
            {
                "--host": [host],
                "--data-dir": [data_dir],
                "--database-url": [database_url],
                "--warehouse": [warehouse],
                "--config": files,
                "--set": assignments,
            }
        )
        Processes(settings, processes, [*options, *(["--no-loops"] if no_loops else [])], data_dir, stopping).run(
            ready_file, lifecycle.write_whole
        )
        return

    if settings.foreign:
        logs.get_logger(__name__).info(
            "settings_not_ours", keys=len(settings.foreign), names=sorted(settings.foreign)[:20]
        )
    if process is not None:
        lifecycle.end_with_input(stopping)
    if process:  # All processes together run as many compactions as one would.
        settings = dataclasses.replace(settings, compaction=dataclasses.replace(settings.compaction, worker_threads=0))
    if process and settings.planner.port:
        settings = dataclasses.replace(
            settings, planner=dataclasses.replace(settings.planner, port=settings.planner.port + process)
        )
    planner = _repeated({"--config": files, "--set": assignments})
    from metastore.db.embedded import EmbeddedPostgres

    embedded = None if settings.database.url else EmbeddedPostgres(data_dir, archive=settings.database.archive_dir)
    with embedded.begun() if embedded else nullcontext():  # PostgreSQL starts while our modules are loaded.
        from metastore.app import App

        app = App(
            settings,
            data_dir=data_dir,
            loops=not no_loops,
            shares_port=process is not None,
            planner=planner,
            postgres=embedded,
        )
        lifecycle.run(app, stopping, lost, ready_file)


def _repeated(options: Mapping[str, Iterable[object]]) -> list[str]:
    """Return options as they are written, without those that were not given."""
    return [
        text for name, values in options.items() for value in values if value is not None for text in (name, str(value))
    ]
