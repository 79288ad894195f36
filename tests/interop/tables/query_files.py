"""Hive's own query files, and the answers that Hive's developers have written down for them (``.q`` and ``.q.out``).

A query file is a list of statements; its answers are each statement's text again and, after the lines of hooks, the rows that
Hive showed, a line each with tabs between the columns.
"""

import json
import re
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import sqlglot
from pyspark.sql import Row
from sqlglot.tokens import TokenType

_DIRECTORIES = ("ql/src/test/queries/clientpositive/", "ql/src/test/results/clientpositive/", "data/files/")
_HOOK = re.compile(r"(PREHOOK|POSTHOOK): (\w+)")
_NOISE = re.compile(r"Warning: |#### A masked pattern")
_COMMENT = re.compile(r"^\s*--.*$", re.MULTILINE)
_DATA_SETS = re.compile(r"--!\s*qt:dataset:(\S+)")
_SET = re.compile(r"set\s+(?:hivevar:|hiveconf:)?([\w.]+)\s*=(.*)", re.IGNORECASE | re.DOTALL)
_VARIABLE = re.compile(r"\$\{(?:hivevar:|hiveconf:)?([\w.:]+)\}")
_OUR_FILES = re.compile(r"""(['"])(?:\.\./)*data/files/""")
_INSTANT = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d+)?")


def unpacked(archive: Path, to: Path) -> Path:
    """Unpack the tests of Hive's source release at the first use, and return the root of their tree."""
    if not to.exists():
        with zipfile.ZipFile(archive) as source:
            root = source.namelist()[0].partition("/")[0]
            fresh = to.with_name("unpacking")
            source.extractall(fresh, [name for name in source.namelist()
                                      if name.startswith(tuple(f"{root}/{one}" for one in _DIRECTORIES))])
        (fresh / root).rename(to)
    return to


@dataclass(frozen=True)
class Statement:
    """One statement with its variables filled in; ``answer``: the rows that Hive showed, None where there is no answer."""

    text: str
    answer: list[str] | None

    @property
    def is_query(self) -> bool:
        return re.match(r"[\s(]*(select|with)\b", self.text, re.IGNORECASE) is not None


class QueryFile:
    """One of Hive's, by its name without ending."""

    def __init__(self, root: Path, name: str) -> None:
        tests = root / "ql" / "src" / "test"
        self._root = root
        self._text = (tests / "queries" / "clientpositive" / f"{name}.q").read_text()
        results = tests / "results" / "clientpositive"
        [found] = [path for path in (results / "llap" / f"{name}.q.out", results / f"{name}.q.out") if path.exists()]
        self._answers = list(_answers(found.read_text()))

    @property
    def data_sets(self) -> Iterator[tuple[str, list[str]]]:
        """The tables that it wants to find, each with the statements that make it."""
        for name in ",".join(_DATA_SETS.findall(self._text)).split(","):
            path = self._root / "data" / "files" / "datasets" / name / "load.hive.sql"
            if name:
                text = path.read_text().replace("${hiveconf:test.data.dir}", f"{self._root}/data/files")
                yield name, [one for one in _split(text) if not one.lower().startswith(("analyze", "set"))]

    def statements(self, scratch: Path) -> Iterator[Statement]:
        """In order, without settings; ``scratch``: an empty directory."""
        variables, at = {"system:test.tmp.dir": str(scratch)}, 0
        for text in _split(self._text):
            if setting := _SET.fullmatch(text):
                variables[setting[1]] = setting[2].strip()
                continue
            filled = _VARIABLE.sub(lambda found: variables.get(found[1], found[0]), text)
            answer = None
            wanted = _plain(filled)
            for number, (told, rows) in enumerate(self._answers[at:at + 40], at + 1):
                if told == wanted:
                    answer, at = rows[variables.get("hive.cli.print.header") == "true":], number
                    break
            yield Statement(_OUR_FILES.sub(rf"\1{self._root}/data/files/", filled), answer)


def _split(text: str) -> Iterator[str]:
    text = _COMMENT.sub("", text)
    begin = 0
    for token in sqlglot.tokenize(text + ";", dialect="hive"):
        if token.token_type is TokenType.SEMICOLON:
            if found := text[begin:token.start].strip():
                yield found
            begin = token.end + 1


def _answers(text: str) -> Iterator[tuple[str, list[str]]]:
    """Statement and rows."""
    query: list[str] = []
    rows: list[str] = []
    state = ""
    for line in text.splitlines():
        if hook := _HOOK.match(line):
            is_new = hook[1] == "PREHOOK" and hook[2] == "query"
            if is_new and query:
                yield _plain("\n".join(query)), rows
            if is_new:
                query, rows = [line.partition("query:")[2]], []
            state = "query" if is_new else "told again" if hook[2] == "query" else hook[1]
        elif state == "query":
            query.append(line)
        elif state == "POSTHOOK" and not _NOISE.match(line):
            rows.append(line)
    if query:
        yield _plain("\n".join(query)), rows


def _plain(text: str) -> str:
    return " ".join(_COMMENT.sub("", text).split())


def shown(rows: list[Row]) -> list[str]:
    """Our rows as Hive would show them, in the order of their texts."""
    return alike(["\t".join(_shown(value) for value in row) for row in rows])


def alike(lines: list[str]) -> list[str]:
    """Rows of Hive's with numbers and instants spelled one way: 1.0 is 1, and digits that float arithmetic makes up go."""
    return sorted("\t".join(_alike(cell.strip()) for cell in line.split("\t")) for line in lines)


def _alike(cell: str) -> str:
    if _INSTANT.fullmatch(cell):
        return cell.rstrip("0").rstrip(".") if "." in cell else cell
    with suppress(ValueError):
        return cell if cell.lstrip("-").isdigit() else f"{float(cell):.6g}"
    return cell


def _shown(value: Any, *, inside: bool = False) -> str:
    match value:
        case None:
            text = "null" if inside else "NULL"
        case str() if inside:
            text = json.dumps(value)
        case bool():
            text = str(value).lower()
        case datetime():
            text = value.isoformat(" ")
        case Decimal():
            text = format(value, "f")
        case bytes() | bytearray():
            text = bytes(value).decode(errors="replace")
        case Row():
            text = ",".join(f'"{name}":{_shown(one, inside=True)}' for name, one in value.asDict().items()).join("{}")
        case Mapping():
            pairs = (f"{_shown(key, inside=True)}:{_shown(one, inside=True)}" for key, one in value.items())
            text = ",".join(pairs).join("{}")
        case list() | tuple():
            text = ",".join(_shown(one, inside=True) for one in value).join("[]")
        case _:
            text = str(value)
    return text
