"""Readers of a backup's file: its schema and version, and the rows of its tables, as data.

Rule: nothing in a file is ever run. ``pg_restore`` prints it as text; of that text only rows are taken, each for a
table and columns that our own migrations have made, and states of their sequences. Any other content is refused, since
no backup has it.
"""

import re
import subprocess
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, NamedTuple

from metastore.db import programs
from metastore.errors import InvalidInputError

_MAGIC = b"PGDMP"
_LONGEST = 100_000  # The limit of a line outside of rows.
_NAME = r'(?:"(?:[^"\n]|"")+"|[a-z_][a-z0-9_$]*)'
_COPY = re.compile(rf"COPY {_NAME}\.({_NAME}) \(({_NAME}(?:, {_NAME})*)\) FROM stdin;\n")
_NAMES = re.compile(_NAME)
_SEQUENCE = re.compile(rf"SELECT pg_catalog\.setval\('{_NAME}\.({_NAME})', ([0-9]{{1,19}}), (true|false)\);\n")
_ENCODING = re.compile(r"SET client_encoding = '(\w+)';\n")
_IDLE = re.compile(
    r"(--[^\n]*|SET \w+ = [\w']+;|SELECT pg_catalog\.set_config\('search_path', '', false\);|\\(un)?restrict \w+)?\n"
)
_SCHEMA = re.compile(r"^\d+; \d+ \d+ TABLE (.+) txn_counter ", re.MULTILINE)
_RESERVED = re.compile(r"pg_|information_schema$")
_VERSION = re.compile(rb"[0-9]{4}\n")


class Rows:
    r"""Rows of a table in a file, up to the line ``\.``; ``encoding``: of their text."""

    def __init__(self, table: str, columns: tuple[str, ...], encoding: str, lines: Iterator[bytes]) -> None:
        self.table, self.columns, self.encoding = table, columns, encoding
        self._lines = lines
        self._ended = False

    def read(self, size: int = -1) -> bytes:
        """Return some whole rows, about as many bytes as wanted; ``b""`` at the end."""
        rows: list[bytes] = []
        length = 0
        while not self._ended and (length < size or not rows):
            row = next(self._lines, b"\\.\n")
            self._ended = row == b"\\.\n"
            if not self._ended:
                rows.append(row)
                length += len(row)
        return b"".join(rows)


class SequenceState(NamedTuple):
    """The state of a sequence."""

    name: str
    value: int
    is_called: bool


@dataclass(frozen=True)
class Archive:
    """A file that ``pg_dump --format=custom`` has written. ``schema``: its metastore's schema."""

    program: Path
    source: Path
    schema: str

    @classmethod
    def of(cls, source: Path) -> "Archive":
        """Open a file. Raises: InvalidInputError if it is no backup of a metastore."""
        program = programs.fitting("pg_restore", 0)
        source = source.resolve()
        with source.open("rb") as file:
            if file.read(len(_MAGIC)) != _MAGIC:
                raise InvalidInputError(f"{source} is no backup of a metastore: it is no archive of pg_dump.")
        listed = subprocess.run(  # noqa: S603 - PostgreSQL's own
            [str(program), "--list", str(source)], capture_output=True, text=True, errors="replace", check=False
        )
        match = _SCHEMA.search(listed.stdout)
        if listed.returncode or not match or _RESERVED.match(match[1]):
            said = listed.stderr.strip() or "it has no table txn_counter"
            raise InvalidInputError(f"{source} is no backup of a metastore: {said}.")
        return cls(program, source, match[1])

    def version(self) -> str:
        """Return the newest migration of the backup's database. Raises: InvalidInputError."""
        with self.content(["alembic_version"]) as content:
            for item in content:
                if isinstance(item, Rows):
                    data = item.read()
                    if _VERSION.fullmatch(data):
                        return data.decode().strip()
        raise self._refused("it does not say which release has written it")

    @contextmanager
    def content(self, names: Collection[str]) -> Iterator[Iterator[Rows | SequenceState]]:
        """Give the rows of tables and the states of sequences with these names, in the file's order.

        Read the rows of a table before you ask for the next one. Raises: InvalidInputError.
        """
        with subprocess.Popen(  # noqa: S603 - PostgreSQL's own
            [
                str(self.program),
                "--data-only",
                f"--schema={self.schema}",
                *(f"--table={name}" for name in names),
                "--file=-",
                str(self.source),
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as process:
            assert process.stdout is not None  # noqa: S101 - for mypy
            assert process.stderr is not None  # noqa: S101
            try:
                yield self._items(process.stdout)
                process.stdout.read()  # Drain the rest when only the beginning was wanted.
            except BaseException:
                process.kill()
                raise
            said = process.stderr.read().decode(
                errors="replace"
            )  # It holds a few lines at most, so it never filled the pipe.
        if process.returncode:
            raise InvalidInputError(programs.failure(self.program, said))

    def _items(self, script: IO[bytes]) -> Iterator[Rows | SequenceState]:
        encoding = "UTF8"
        lines = iter(script)
        for line in iter(lambda: script.readline(_LONGEST), b""):
            text = line.decode("utf-8", "replace")
            if match := _COPY.fullmatch(text):
                columns = tuple(_plain(name) for name in _NAMES.findall(match[2]))
                rows = Rows(_plain(match[1]), columns, encoding, lines)
                yield rows
                while rows.read(1 << 20):
                    pass
            elif match := _SEQUENCE.fullmatch(text):
                yield SequenceState(_plain(match[1]), int(match[2]), match[3] == "true")
            elif match := _ENCODING.fullmatch(text):
                encoding = match[1]
            elif not _IDLE.fullmatch(text):
                raise self._refused(f"it holds what no backup has, and what is not run: {text.strip()[:200]!r}")

    def _refused(self, why: str) -> InvalidInputError:
        return InvalidInputError(f"{self.source} is no backup of a metastore: {why}. Nothing was changed.")


def require_known(archive: Archive, item: Rows | SequenceState, tables: Mapping[str, Collection[str]]) -> None:
    """Raise InvalidInputError for rows or sequences of unknown tables or columns, which get no columns."""
    columns = item.columns if isinstance(item, Rows) else ()
    name = item.table if isinstance(item, Rows) else item.name
    unknown = sorted(set(columns) - set(tables.get(name, ())))
    if name not in tables or unknown or len(set(columns)) != len(columns):
        raise InvalidInputError(
            f"{archive.source} holds {name} {f'with {unknown[0]}' if unknown else ''}, which the release that is said "
            "to have written it does not have: the file was changed. Nothing was changed here."
        )


def _plain(name: str) -> str:
    return name[1:-1].replace('""', '"') if name.startswith('"') else name
