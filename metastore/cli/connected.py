"""What the commands share that talk to a running metastore over Thrift.

Rule: every failure is an error of ours, so that ``main`` can say it in a sentence with the right exit code.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, TypeVar

import click

from metastore.cli.output import say
from metastore.client import DomainClient, MetastoreUnreachableError
from metastore.client.client import URI_VARIABLE

Command = TypeVar("Command", bound=Callable[..., Any])


def uri_option(command: Command) -> Command:
    """``--uri``."""
    return click.option(
        "--uri",
        envvar=URI_VARIABLE,
        show_envvar=True,
        metavar="thrift://HOST:PORT",
        help="The metastore; several with commas.  [default: thrift://localhost:9083]",
    )(command)


def watch_option(command: Command) -> Command:
    """``--watch`` and ``--every``."""
    command = click.option(
        "--every",
        type=click.FloatRange(min=0.1),
        default=2.0,
        show_default=True,
        metavar="SECONDS",
        help="The pause between two answers of --watch.",
    )(command)
    return click.option("--watch", is_flag=True, help="Ask again and again, until interrupted.")(command)


@contextmanager
def connected(uri: str | None) -> Iterator[DomainClient]:
    """A client of the metastore, closed at the end of the block, in which Thrift's exceptions become ours."""
    try:
        client = DomainClient(uri, timeout_s=60)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--uri") from error
    with client:
        yield client


def repeated(show: Callable[[], None], *, watch: bool, every: float, pause: threading.Event | None = None) -> None:
    """Show once, or again and again until interrupted; a server that restarts meanwhile does not end the watching."""
    if not watch:
        show()
        return
    pause = pause or threading.Event()
    try:
        while True:
            click.clear()
            try:
                show()
            except MetastoreUnreachableError as error:
                say(f"metastore: {error}", err=True)
            if pause.wait(every):
                return
    except KeyboardInterrupt:
        return


def instant(millis: int | None) -> str | None:
    """Return a point in time for people and programs alike; 0 and None are "never"."""
    if not millis:
        return None
    return datetime.fromtimestamp(millis / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
