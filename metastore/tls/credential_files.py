"""Passwords that Hadoop keeps in credential files (``hadoop.security.credential.provider.path``), as settings.

Rule: as in Hadoop, a password in a credential file wins over the text of its key, also for keys of Hive. Only files of
this machine are read; a path that cannot be read stops the start. Java keeps names in lower case.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path

from metastore import object_stores
from metastore.config.settings import ROWS, SettingsSource
from metastore.errors import InvalidInputError

_PATH = "hadoop.security.credential.provider.path"
_PASSWORD_FILE = "hadoop.security.credstore.java-keystore-provider.password-file"  # noqa: S105 - a key's name
_PASSWORD_VARIABLE = "HADOOP_CREDSTORE_PASSWORD"  # noqa: S105
_DEFAULT = "none"
_LOCAL = re.compile(r"(?:jceks://file|localjceks://file)(/.*)")
_BUCKETS = re.compile(r"(fs\.s3a\.(?:bucket\..+\.)?)security\.credential\.provider\.path")
_LARGEST = 1 << 20
"""Bytes; a credential file is a few kilobytes."""


def sources(given: Iterable[SettingsSource], environ: Mapping[str, str]) -> Iterator[SettingsSource]:
    """Yield a source for each credential file that the given sources name.

    Raises: InvalidInputError naming the key, the file and its fault.
    """
    texts = dict(chain.from_iterable(source.values.items() for source in given))
    for name, text in sorted(texts.items(), key=lambda each: (each[0] != _PATH, each[0])):  # S3A's own files win.
        bucket = _BUCKETS.fullmatch(name)
        if name != _PATH and not bucket:
            continue
        prefix = bucket[1] if bucket else ""
        for path in reversed([each.strip() for each in text.split(",") if each.strip()]):  # The first one wins.
            yield SettingsSource(path, dict(_secrets(name, path, prefix, _password(texts, environ))), foreign=True)


def _password(texts: Mapping[str, str], environ: Mapping[str, str]) -> str:
    if _PASSWORD_VARIABLE in environ:
        return environ[_PASSWORD_VARIABLE]
    if not (path := texts.get(_PASSWORD_FILE, "")):
        return _DEFAULT
    try:
        return Path(path.removeprefix("file://")).read_text().strip()
    except OSError as error:
        raise InvalidInputError(f"{_PASSWORD_FILE} = {path} cannot be read: {error.strerror}.") from error


def _secrets(key: str, path: str, prefix: str, password: str) -> Iterator[tuple[str, str]]:
    from metastore.tls import jceks  # It loads cryptography, which a start without such files does not need.

    place = _LOCAL.fullmatch(path)
    if place is None:
        raise InvalidInputError(
            f"{key} = {path} cannot be read here: copy the file to this machine and write localjceks://file/PATH, or "
            "leave the key out and give the passwords as settings."
        )
    try:
        with Path(place[1]).open("rb") as file:
            found = jceks.read(file.read(_LARGEST), password)
    except OSError as error:
        raise InvalidInputError(f"{key} = {path} cannot be read: {error.strerror}.") from error
    except ValueError as error:
        raise InvalidInputError(
            f"{key} = {path} cannot be read: {error}. The password is taken from {_PASSWORD_VARIABLE}, from "
            f"{_PASSWORD_FILE}, or is Hadoop's own ({_DEFAULT})."
        ) from error
    ours = {name.lower(): name for name, row in ROWS.items() if row.is_secret}
    for alias, sealed in found.items():
        if alias in ours and not prefix:
            yield ours[alias], sealed.text()
        elif object_stores.is_key(alias) and alias.startswith("fs.s3a." if prefix else ""):
            yield alias if alias.startswith(prefix) else prefix + alias.removeprefix("fs.s3a."), sealed.text()
