"""Sources of settings: files, the environment, the command line.

Rule: this module does not know the meaning of keys; a source is read whole or refused with a sentence.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from metastore.config import hadoop_xml
from metastore.config.settings import ROWS, SettingsSource
from metastore.errors import InvalidInputError

# Not METASTORE_ alone: Kubernetes sets METASTORE_PORT for a Service of that name, and the CLI reads METASTORE_URI.
PREFIX = "METASTORE_CONF_"
_SITES = (
    "core-site.xml",
    "hdfs-site.xml",
    "hive-site.xml",
    "hivemetastore-site.xml",
    "metastore-site.xml",
    "metastore.yaml",
)
_VARIABLE = re.compile(r"\$\{([^}$\s]+)\}")
_DEFAULT = re.compile(r"(.*?)(?:(:?-)(.*))?", re.DOTALL)
_DEEPEST = 20
"""How often a value may lead to another, as in Hadoop."""


def command_line(assignments: Iterable[str]) -> SettingsSource:
    """Read the options ``--set KEY=VALUE``; the last one wins."""
    values = {}
    for assignment in assignments:
        name, mark, text = assignment.partition("=")
        if not mark or not name.strip():
            raise InvalidInputError(
                f"--set {assignment!r} is not valid: expected KEY=VALUE, for example hive.txn.timeout=300s."
            )
        values[name.strip()] = text
    return SettingsSource("--set", values)


def environment(environ: Mapping[str, str]) -> SettingsSource:
    """Read variables such as ``METASTORE_CONF_HIVE_TXN_TIMEOUT=300s``: keys in capitals, _ for each dot or dash."""
    spellings = {_variable(name): name for name in ROWS}
    return SettingsSource(
        "environment",
        {spellings.get(variable, variable): text for variable, text in environ.items() if variable.startswith(PREFIX)},
    )


def files(path: Path) -> Iterator[SettingsSource]:
    """Yield the source of a file; of a directory one for each file that Hadoop and Hive look for, the last winning."""
    if not path.is_dir():
        yield file(path)
        return
    found = [path / name for name in _SITES if (path / name).exists()]
    if not found:
        raise InvalidInputError(f"The directory {path} has no settings: expected some of {', '.join(_SITES)}.")
    yield from map(file, found)


def expanded(given: Sequence[SettingsSource], environ: Mapping[str, str]) -> Iterator[SettingsSource]:
    """Yield sources in which ``${name}`` stands for another value, of whatever file; as in Hadoop, unknown ones stay.

    ``${env.NAME}``, ``${env.NAME-default}`` and ``${env.NAME:-default}`` are variables of the environment.
    """
    texts = dict(chain.from_iterable(source.values.items() for source in given if source.foreign))

    def value(found: re.Match[str]) -> str:
        name = found[1]
        if not name.startswith(("env.", "env:")):
            return texts.get(name, found[0])
        variable, mark, default = _DEFAULT.fullmatch(name[4:]).groups()  # type: ignore[union-attr]
        text = environ.get(variable, "" if mark == ":-" else None)
        return (
            text or default
            if mark == ":-"
            else default
            if text is None and mark
            else found[0]
            if text is None
            else text
        )

    for source in given:
        if not source.foreign:
            yield source
            continue
        whole = {}
        for name, text in source.values.items():
            for _ in range(_DEEPEST):
                before, text = text, _VARIABLE.sub(value, text)  # noqa: PLW2901
                if text == before:
                    break
            whole[name] = text
        yield source._replace(values=whole)


def file(path: Path) -> SettingsSource:
    """Return a .yaml file of ours, or a Hadoop .xml file (hive-site.xml, metastore-site.xml)."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InvalidInputError(f"The configuration file {path} cannot be read: {error.strerror}.") from error
    if path.suffix == ".xml":
        return SettingsSource(str(path), hadoop_xml.read(content, path), foreign=True)
    if path.suffix in {".yaml", ".yml"}:
        return SettingsSource(str(path), dict(_yaml(content, path)))
    raise InvalidInputError(f"The configuration file {path} is of no known kind: expected .yaml or .xml.")


def _variable(name: str) -> str:
    return PREFIX + name.upper().replace(".", "_").replace("-", "_")


def _yaml(content: bytes, path: Path) -> Iterator[tuple[str, str]]:
    import yaml

    try:
        document = yaml.safe_load(content)
    except yaml.YAMLError as error:
        raise InvalidInputError(f"The configuration file {path} is not YAML: {' '.join(str(error).split())}") from error
    if not isinstance(document or {}, dict):
        raise InvalidInputError(f"The configuration file {path} is not a mapping of keys to values.")
    yield from _flat(document or {}, "", path)


def _flat(mapping: dict[Any, Any], prefix: str, path: Path) -> Iterator[tuple[str, str]]:
    """Yield flat keys: ``hive: {txn: {timeout: 300s}}`` and ``hive.txn.timeout: 300s`` mean the same."""
    for name, value in mapping.items():
        full = f"{prefix}{name}"
        if isinstance(value, dict):
            yield from _flat(value, f"{full}.", path)
        elif isinstance(value, list):
            yield full, ",".join(map(str, value))
        elif isinstance(value, bool):
            yield full, str(value).lower()
        elif value is None:
            yield full, ""
        else:
            yield full, str(value)
