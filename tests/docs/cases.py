"""Writes docs/reference/compaction-cases.md: each case of docs/spec/compaction.md with the tests that name its id."""

import ast
import re
from collections.abc import Iterator

from tests.docs import spec

PAGE = "docs/spec/compaction.md"
_CASE = re.compile(r"COMP-[IQWC]\d\d")


def page() -> Iterator[str]:
    """Yield the whole page in pieces."""
    yield """# The cases of compaction, and what proves them

Each case of [docs/spec](../spec/compaction.md) with the tests that name its id. `I`: the Initiator, `Q`: the queue and its calls, `W`: the Worker,
`C`: the Cleaner.
"""
    by_case = tests_by_case()
    for title, rows in _sections():
        yield f"\n## {title}\n\n| Case | What is there, and what follows | Proven by |\n|---|---|---|\n"
        for cell, text in rows:
            proofs = dict.fromkeys(name for case in spec.expanded(cell) for name in by_case.get(case, ()))
            yield f"| {cell} | {text} | {'<br>'.join(f'`{name}`' for name in proofs)} |\n"
    yield "\n## What is different here on purpose\n\n| Fact | Hive | Here |\n|---|---|---|\n"
    for fact, hive, here in _differences():
        yield f"| {fact} | {hive} | {here} |\n"


def tests_by_case() -> dict[str, list[str]]:
    """The tests that name each case, as ``file::test`` below tests/."""
    found: dict[str, list[str]] = {}
    for path, text in spec.texts().items():
        if path.startswith("tests/") and path.rpartition("/")[2].startswith("test_") and "COMP-" in text:
            for name, source in _tests(text):
                for case in sorted(spec.facts_named(source)):
                    if _CASE.fullmatch(case):
                        found.setdefault(case, []).append(f"{path.removeprefix('tests/')}::{name}")
    return found


def _tests(text: str) -> Iterator[tuple[str, str]]:
    """Each test of a module with its source, decorators and comments included."""
    lines = text.splitlines()
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            yield node.name, "\n".join(lines[first - 1 : node.end_lineno])


def _sections() -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Yield the title and the rows of each table of cases."""
    _, _, cases = spec.texts()[PAGE].partition("\n## Cases\n")
    for part in re.split(r"\n(?=[A-Z][^|\n]*:\n)", cases)[1:]:
        rows = re.findall(r"^\| ((?:COMP-[IQWC]\d\d(?:, )?)+) \| (.*) \|$", part, re.MULTILINE)
        title = part.partition(":")[0].removeprefix("The ")
        yield title[0].upper() + title[1:], [(cell, text.removesuffix(" (context)")) for cell, text in rows]


def _differences() -> Iterator[tuple[str, str, str]]:
    is_of_facts = False
    for line in spec.texts()[PAGE].splitlines():
        if line.startswith("| Id |"):
            is_of_facts = line == "| Id | Hive | Fact | Here |"
        if is_of_facts and line.startswith("| COMP-"):
            fact, _, hive, here = (cell.strip() for cell in line.strip("|").split("|"))
            if here:
                yield fact, hive, here
