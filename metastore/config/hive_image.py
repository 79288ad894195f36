"""The variables of Apache's Hive image, as settings: what starts its metastore starts ours.

Rule: they are read in a container only (our images set ``METASTORE_IMAGE``) and only with ``SERVICE_NAME``, since
elsewhere names like these may mean anything. A variable that cannot be honoured stops the start. Source: the
`entrypoint.sh` of Apache Hive 4's image.
"""

import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path

from metastore.config.jdbc import ONLY_POSTGRES
from metastore.config.settings import SettingsSource
from metastore.errors import InvalidInputError

MARK = "METASTORE_IMAGE"
_PROPERTY = re.compile(r"-D([^=]+)=(.*)", re.DOTALL)
_SCHEMA_COMMANDS = {"", "initSchema", "upgradeSchema", "initOrUpgradeSchema"}
_POSTGRES = {"", "postgres"}
_PORT = re.compile(r"\d+")


def applies(environ: Mapping[str, str]) -> bool:
    """Return True if the variables of Hive's image are meant. Raises: InvalidInputError for what is none of it."""
    service = environ.get("SERVICE_NAME", "")
    if not service or not environ.get(MARK):
        return False
    if service != "metastore":
        raise InvalidInputError(
            f"SERVICE_NAME = {service!r}: this image is a metastore only. Run {service} from Apache's image, with "
            "hive.metastore.uris naming this one."
        )
    driver = environ.get("DB_DRIVER", "")
    if driver not in _POSTGRES:
        raise InvalidInputError(
            f"DB_DRIVER = {driver!r} cannot be honoured: {ONLY_POSTGRES}. Set DB_DRIVER=postgres and "
            "javax.jdo.option.ConnectionURL in SERVICE_OPTS, or leave both out for an embedded PostgreSQL."
        )
    command = environ.get("SCHEMA_COMMAND", "")
    if command not in _SCHEMA_COMMANDS:
        raise InvalidInputError(
            f"SCHEMA_COMMAND = {command!r} cannot be honoured: each start brings the schema up to date. Leave it out."
        )
    return True


def files(environ: Mapping[str, str]) -> tuple[Path, ...]:
    """Return the directory of settings that is mounted, if there is one; Hive's image goes on without it, too."""
    directory = environ.get("HIVE_CUSTOM_CONF_DIR", "")
    return (Path(directory),) if applies(environ) and directory and Path(directory).is_dir() else ()


def defaults(environ: Mapping[str, str]) -> Iterator[SettingsSource]:
    """Yield what a container needs that others reach."""
    if applies(environ):
        yield SettingsSource("image", {"hive.metastore.thrift.bind.host": "0.0.0.0"})  # noqa: S104 - Hive's own


def sources(environ: Mapping[str, str]) -> Iterator[SettingsSource]:
    """Yield the settings of the variables, the last winning."""
    if not applies(environ):
        return
    for variable in ("HADOOP_CLIENT_OPTS", "SERVICE_OPTS"):
        yield SettingsSource(variable, dict(_properties(variable, environ.get(variable, ""))), foreign=True)
    port = environ.get("METASTORE_PORT", "")
    if _PORT.fullmatch(port):  # Kubernetes sets METASTORE_PORT=tcp://... for a Service of that name.
        yield SettingsSource("METASTORE_PORT", {"hive.metastore.port": port})


def _properties(variable: str, text: str) -> Iterator[tuple[str, str]]:
    """Yield the -D options. Others are for a Java virtual machine, of which there is none."""
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise InvalidInputError(f"{variable} cannot be read: {error}.") from error
    for match in map(_PROPERTY.fullmatch, words):
        if match:
            yield match[1].strip(), match[2]
