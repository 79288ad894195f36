"""Long SQL stands beside the store that runs it, all of it is run, and all of it is in the wheel."""

import ast
import re
import tomllib
from fnmatch import fnmatch
from pathlib import Path

import pytest
from setuptools import find_packages

from metastore.db.statements import Statements
from tests.docs import schema

ROOT = Path(__file__).parents[3]
PACKAGE = ROOT / "metastore"
FILES = sorted(PACKAGE.rglob("*.sql"))
LONGEST = 7
"""Lines of SQL that a store may have within its Python."""


@pytest.fixture
def statements(tmp_path):
    (tmp_path / "store.sql").write_text(
        "-- name: first\n-- Why it is so: 100 %.\nSELECT 1\n  -- within\n  FROM {table};\n\n-- name: second\nDELETE FROM a; DELETE FROM b;\n")
    return Statements(str(tmp_path / "store.py"))


def test_a_statement_is_named_and_has_its_parts(statements):
    assert statements.text("first", table="t") == "SELECT 1\n  FROM t"
    assert statements.text("second") == "DELETE FROM a; DELETE FROM b"


@pytest.mark.parametrize(("name", "parts"), [("first", {}), ("first", {"table": "t", "condition": "c"}), ("third", {})])
def test_what_does_not_fit_is_refused_when_the_store_is_imported(statements, name, parts):
    with pytest.raises(KeyError):
        statements.text(name, **parts)


@pytest.mark.parametrize("path", [path for path in FILES if path not in schema.files()], ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_store_runs_every_statement_of_its_file(path):
    named = re.findall(r"^-- name: (\w+)$", path.read_text(), re.MULTILINE)
    run = re.findall(r"""_SQL\.text\(\s*"(\w+)\"""", path.with_suffix(".py").read_text())
    assert sorted(set(run)) == sorted(named)
    assert "Statements(__file__)" in path.with_suffix(".py").read_text()


def test_no_long_sql_is_left_in_python():
    stores = [path for path in PACKAGE.rglob("*.py") if "store" in {*path.parts, path.stem} or path.parent.name == "db"]
    assert len(stores) > 40
    long = []
    for path in stores:
        tree = ast.parse(path.read_text())
        documents = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        long += [f"{path.relative_to(ROOT)}:{node.lineno}" for node in ast.walk(tree)
                 if isinstance(node, ast.JoinedStr | ast.Constant) and isinstance(getattr(node, "value", ""), str)
                 and id(node) not in documents and node.end_lineno - node.lineno >= LONGEST]
    assert long == []


def test_every_file_is_in_the_wheel():
    patterns = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["package-data"]["*"]
    packages = set(find_packages(str(ROOT), include=["metastore", "metastore.*"]))
    assert len(FILES) > 20
    assert [path for path in FILES if ".".join(path.parent.relative_to(ROOT).parts) not in packages
            or not any(fnmatch(path.name, pattern) for pattern in patterns)] == []
