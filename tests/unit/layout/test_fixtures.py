"""Fixtures that a folder of tests has from another: with all that they need, since nobody runs the long targets after each change."""

import ast
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[2]


def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def needs(path: Path) -> dict[str, set[str]]:
    """Return the functions of a conftest, each with the names of its parameters."""
    return {
        one.name: {argument.arg for argument in one.args.args}
        for one in parsed(path).body
        if isinstance(one, ast.FunctionDef)
    }


def taken(path: Path) -> dict[Path, set[str]]:
    """Return the conftests from which another imports, each with the imported names."""
    return {
        TESTS.parent.joinpath(*one.module.split(".")).with_suffix(".py"): {name.name for name in one.names}
        for one in parsed(path).body
        if isinstance(one, ast.ImportFrom) and (one.module or "").endswith(".conftest")
    }


@pytest.mark.parametrize(
    "path",
    [path for path in sorted(TESTS.rglob("conftest.py")) if taken(path)],
    ids=lambda path: str(path.relative_to(TESTS)),
)
def test_a_fixture_comes_with_those_that_it_needs(path) -> None:
    above = set().union(
        *(needs(folder / "conftest.py") for folder in path.parents if (folder / "conftest.py").exists())
    )
    for source, names in taken(path).items():
        there = needs(source)
        wanted = set().union(*(there.get(name, set()) for name in names)) & there.keys()
        assert wanted <= names | above, f"import them from {source} too"


def test_every_slow_test_exists():
    slow = [line for line in (TESTS / "slow.txt").read_text().splitlines() if line and line[0] != "#"]
    gone = []
    for line in slow:
        module, _, test = line.partition("::")
        if not (TESTS.parent / module).is_file() or (test and f"def {test.partition('[')[0]}(" not in (TESTS.parent / module).read_text()):
            gone.append(line)

    assert slow
    assert gone == []
