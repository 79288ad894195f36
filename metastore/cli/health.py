"""The command ``metastore health``: a probe of the process that wrote a ready file, for probes without its TLS.

Rule: the ready file has the address and the protocol; no setting needs to be repeated.
"""

import json
import ssl
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import HTTPSHandler, ProxyHandler, build_opener

import click

from metastore.cli.options import ready_file_option
from metastore.errors import MetastoreError, UnavailableError


class NotReadyError(MetastoreError):
    """Error: the process answers that it is not ready."""


@click.command()
@ready_file_option
@click.option("--alive", is_flag=True, help="Only ask whether the process answers, not whether all parts are ready.")
@click.option(
    "--timeout",
    type=click.FloatRange(min=0.1),
    default=4.0,
    show_default=True,
    metavar="SECONDS",
    help="How long it may take to answer.",
)
def health(ready_file: Path | None, alive: bool, timeout: float) -> None:
    """Ask whether a process on this machine is ready, for probes.

    The process is a metastore or a worker; its ready file tells where it answers. Exit code 0: it is ready. 1: a part
    is not, and which. 3: it is not up yet, or does not answer. The address, and whether it speaks TLS, are in the file;
    its certificate is not checked, since it is the process that wrote the file.
    """
    if ready_file is None:
        raise click.UsageError("Say with --ready-file (or METASTORE_READY_FILE) which ready file the process writes.")
    address = _address(ready_file)
    answer = _answer(f"{address}/{'livez' if alive else 'readyz'}", timeout)
    waiting = [
        f"{name}: {part.get('reason', 'not ready')}"
        for name, part in answer.get("parts", {}).items()
        if not part["ready"]
    ]
    if waiting or answer.get("stopping"):
        raise NotReadyError(f"{address} is not ready: {'; '.join(waiting) or 'it is stopping'}.")


def _address(ready_file: Path) -> str:
    try:
        return str(json.loads(ready_file.read_text())["http"])
    except FileNotFoundError as error:
        raise UnavailableError(f"There is no {ready_file}: the process is not up yet, or has ended.") from error
    except (KeyError, TypeError, ValueError) as error:
        raise click.BadParameter(f"{ready_file} is no ready file of a metastore.", param_hint="--ready-file") from error


def _answer(url: str, timeout: float) -> Any:
    own = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    own.check_hostname = False
    own.verify_mode = ssl.CERT_NONE
    try:
        with build_opener(ProxyHandler({}), HTTPSHandler(context=own)).open(url, timeout=timeout) as answer:
            return json.load(answer)
    except HTTPError as error:
        with error:
            if error.code == HTTPStatus.SERVICE_UNAVAILABLE:
                return json.load(error)
        raise UnavailableError(f"{url} answers with {error.code}.") from error
    except (OSError, ValueError) as error:
        raise UnavailableError(f"{url} does not answer: {getattr(error, 'reason', error)}.") from error
