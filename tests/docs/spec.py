"""Where facts, decisions and pages are defined, and who refers to them.

A fact is defined by a row of docs/spec whose first cell is its id, several ids, or a range ("CAT-6 to CAT-9").
"""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
SPEC = ROOT / "docs" / "spec"
_PLACES = ("metastore", "tests", "migrations", "benchmarks", "deploy", "docs", "tools", "thrift_idl", ".")
_TEXTS = {"", ".py", ".md", ".sql", ".java", ".sh", ".yaml", ".yml", ".toml", ".txt", ".html", ".js", ".thrift"}
_NOT_OURS = {"__pycache__", "thrift_gen", "node_modules", "target"}

_ID = r"(?:TXN|LOCK|WID|ACID|COMP|CAT|CLIENT|SET)-[A-Z]?\d+"
_IDS = re.compile(rf"\b({_ID})(?: to ({_ID}))?\b")
_DECISIONS = re.compile(r"\b(?:ADRs?|[Dd]ecisions?) ?0*(\d+)((?:, 0*\d+| and 0*\d+)*)")
_PAGES = re.compile(r"(?<![\w{}*<>-])[\w./-]*[\w-]\.md\b")
_FILES = re.compile(r"(?<![\w/.{}*<>$-])((?:metastore|tests|docs|deploy|tools|benchmarks|migrations|thrift_idl)/[\w./-]*\w)")
_SECTION = re.compile(r"§ ?\d")


class Reference(NamedTuple):
    """One mention: what is meant, and where it stands."""

    name: str
    place: str


@cache
def texts() -> dict[str, str]:
    """Every text of the repository that people write, by its path from the root."""
    paths = [path for place in _PLACES for path in sorted((ROOT / place).glob("*" if place == "." else "**/*"))
             if path.suffix in _TEXTS and not any(part in _NOT_OURS or part.startswith(".") for part in path.relative_to(ROOT).parts)
             and path.is_file()]
    read = {str(path.relative_to(ROOT)): _bytes(path) for path in paths}
    return {path: text.decode("utf-8", "replace") for path, text in read.items() if b"\0" not in text[:4096]}


def _bytes(path: Path) -> bytes:
    """Return the bytes of a file, or none if another test has just removed it."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""


def expanded(text: str) -> Iterator[str]:
    """Yield the ids that a text names, with ranges written out."""
    for first, last in _IDS.findall(text):
        if not last:
            yield first
            continue
        head, number = re.fullmatch(r"(.*?)(\d+)", first).groups()
        other, end = re.fullmatch(r"(.*?)(\d+)", last).groups()
        if head != other or int(number) >= int(end):
            yield f"{first} to {last}"
            continue
        width = len(number) if number.startswith("0") else 0
        for one in range(int(number), int(end) + 1):
            yield f"{head}{one:0{width}}"


@cache
def facts() -> dict[str, list[str]]:
    """Every id that docs/spec defines, with the rows that do."""
    found: dict[str, list[str]] = {}
    for page in sorted(SPEC.glob("*.md")):
        for line in page.read_text(encoding="utf-8").splitlines():
            cell = re.match(rf"\| ({_ID}(?:(?:, | to ){_ID})*) \|", line)
            for name in expanded(cell[1]) if cell else ():
                found.setdefault(name, []).append(line)
    return found


def facts_named(text: str) -> set[str]:
    return set(expanded(text))


def decisions_named(text: str) -> set[int]:
    return {int(number) for first, more in _DECISIONS.findall(text) for number in re.findall(r"\d+", first + " " + more)}


def pages_named(text: str) -> set[str]:
    return set(_PAGES.findall(text))


def files_named(text: str) -> set[str]:
    return {name for name in _FILES.findall(text) if "NNNN" not in name}


def dangling(path: str, text: str) -> Iterator[Reference]:
    """Yield the references of a text whose targets do not exist."""
    for name in sorted(facts_named(text) - facts().keys()):
        yield Reference(name, path)
    for number in sorted(decisions_named(text)):
        if number not in _decision_numbers():
            yield Reference(f"ADR {number}", path)
    for page in sorted(pages_named(text)):
        if not _is_page(page, path):
            yield Reference(page, path)
    for name in sorted(files_named(text) - pages_named(text)):
        if not (ROOT / name).exists() and not (ROOT / f"{name}.py").exists():
            yield Reference(name, path)
    for section in _SECTION.findall(text):
        yield Reference(f"{section}, a section of no page here", path)


def _is_page(name: str, path: str) -> bool:
    """Return True if a page is named from the root, from the page ``path``, or by its bare name."""
    beside = ((ROOT / path).parent / name).resolve()
    return (ROOT / name).exists() or beside.exists() or ("/" not in name and name in _page_names())


@cache
def _decision_numbers() -> set[int]:
    return {int(path.name[:4]) for path in (ROOT / "docs" / "adr").glob("[0-9]*.md")}


@cache
def _page_names() -> set[str]:
    return {Path(path).name for path in texts() if path.endswith(".md")}
