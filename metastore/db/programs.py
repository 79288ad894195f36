"""PostgreSQL's own client programs, of a version that can talk to a given server.

Rule: programs of the embedded PostgreSQL come first, then those on PATH; a program older than the server is not used,
because pg_dump refuses it, and half a dump is useless. Passwords travel in the environment, where other users cannot
read them.
"""

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

from psycopg2.extensions import make_dsn, parse_dsn

from metastore.db.embedded import programs
from metastore.errors import InvalidInputError, UnavailableError


def fitting(name: str, server_major: int) -> Path:
    """Return the program, at least of the server's major version. Raises: InvalidInputError."""
    versions = {}
    for path in _places(name):
        version = _major(path)
        if version >= server_major:
            return path
        versions[str(path)] = version
    listed = ", ".join(f"{path} is of version {version}" for path, version in versions.items()) or "there is none here"
    raise InvalidInputError(
        f"The PostgreSQL is of version {server_major}, and a {name} of that version or a newer "
        f"one is needed: {listed}. Install PostgreSQL's client programs and put them on PATH."
    )


def reached(url: str) -> tuple[str, dict[str, str]]:
    """Return the URL for a program's arguments, and the environment that has its password."""
    parts = parse_dsn(url)
    password = parts.pop("password", None)
    return make_dsn("", **parts), {**os.environ, **({"PGPASSWORD": password} if password else {})}


def run(program: Path, *arguments: str, env: dict[str, str], **process: Any) -> None:
    """Run the program to its end. Raises: UnavailableError with its message."""
    done = subprocess.run(  # noqa: S603 - PostgreSQL's own
        [str(program), *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        env=env,
        **process,
    )
    if done.returncode:
        raise UnavailableError(failure(program, done.stderr))


def failure(program: Path, said: str) -> str:
    """Return one sentence about a program that failed."""
    last = next((line for line in said.strip().splitlines() if "error" in line), said.strip() or "it does not say why")
    return f"{program.name} failed, nothing was changed: {last}"


def _places(name: str) -> list[Path]:
    places = []
    try:
        places.append(programs() / name)
    except UnavailableError:  # The package is not installed.
        places.clear()
    on_path = shutil.which(name)
    return [*places, *([Path(on_path)] if on_path else [])]


def _major(path: Path) -> int:
    try:
        answer = subprocess.run([str(path), "--version"], capture_output=True, text=True, check=False)  # noqa: S603
    except OSError:
        return 0
    match = re.search(r"\) (\d+)", answer.stdout)
    return int(match[1]) if match else 0
