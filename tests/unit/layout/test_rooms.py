"""Every module of a concept is rules, store or service of a room, and what the kind is bound to holds for it."""

import re
import tomllib
from pathlib import Path

import grimp
import pytest
from coverage.files import GlobMatcher, prep_patterns
from importlinter.domain.helpers import module_expressions_to_modules
from importlinter.domain.imports import ModuleExpression

ROOT = Path(__file__).parents[3]
CONTRACTS = {one["name"]: one for one in tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]}
KINDS = ("rules", "store", "service")
# Of Python's own library: what neither reads nor changes anything outside.
PURE_LIBRARY = {"base64", "binascii", "bisect", "calendar", "collections", "contextlib", "dataclasses", "datetime", "decimal", "enum", "fractions",
                "functools", "hashlib", "hmac", "ipaddress", "itertools", "json", "math", "operator", "re", "struct", "typing",
                "croniter"}  # A library that is as pure: dates that follow from an expression and an instant.


@pytest.fixture(scope="module")
def graph():
    return grimp.build_graph("metastore", include_external_packages=True, cache_dir=None)


@pytest.fixture(scope="module")
def modules(graph):
    """Return the modules with something in them: no packages but those whose ``__init__`` has code."""
    return sorted(name for name in graph.modules if name.startswith("metastore.") and (
        not graph.find_children(name) or graph.find_modules_directly_imported_by(name)))


def kind(module: str) -> str | None:
    """Return the innermost word of a module's name that says what kind of module it is."""
    return next((part for part in reversed(module.split(".")) if part in KINDS), None)


def concepts(modules) -> set[str]:
    return {one.split(".")[1] for one in modules if kind(one)}


def matched(graph, expressions) -> set[str]:
    """Return the modules that these expressions of a contract name, with the modules below them."""
    named = {one.name for one in module_expressions_to_modules(graph, [ModuleExpression(text) for text in expressions])}
    return named | {below for one in named if not graph.is_module_squashed(one) for below in graph.find_descendants(one)}


def pure(graph) -> set[str]:
    return matched(graph, CONTRACTS["Rules and the ACID format are pure"]["source_modules"])


def test_the_concepts_are_these(modules):
    assert concepts(modules) == {"catalog", "compaction", "doctor", "housekeeping", "locks", "materialized_views", "places", "recovery", "tokens", "txns",
                                 "write_ids"}


def test_every_module_of_a_concept_has_a_kind(graph, modules):
    assert [one for one in modules if one.split(".")[1] in concepts(modules) and not kind(one) and one not in pure(graph)] == []


def test_a_kind_is_a_module_or_a_folder_and_no_ending(modules):
    assert [one for one in modules if re.search(r"(_(rules|store|service|utils|helpers)|\.(utils|helpers|common))(\.|$)", one)] == []


@pytest.mark.parametrize(("name", "field", "of"), [
    ("Rules and the ACID format are pure", "source_modules", "rules"),
    ("Only the database package and the stores speak SQL", "allowed_importers", "store"),
    ("A store never calls a service", "source_modules", "store"),
    ("A store never calls a service", "forbidden_modules", "service"),
    ("Services do not call each other", "modules", "service"),
    ("Spark code and the client open no database", "forbidden_modules", "store"),
    ("Spark code and the client open no database", "forbidden_modules", "service")])
def test_a_contract_of_a_kind_names_every_module_of_it(graph, modules, name, field, of):
    wanted = {one for one in modules if kind(one) == of}
    assert len(wanted) > 10
    assert wanted - matched(graph, CONTRACTS[name][field]) == set()


def test_every_package_has_a_layer():
    contract = CONTRACTS["A request goes down the layers, never up"]
    assert contract["containers"] == ["metastore"]
    assert contract["exhaustive"]
    assert contract["exhaustive_ignores"] == ["__main__"]
    assert not any(" : " in layer for layer in contract["layers"])  # beside each other: they do not import each other


def test_no_import_is_ignored():
    assert [name for name, one in CONTRACTS.items() if "ignore_imports" in one] == []


def test_pure_modules_import_only_pure_ones(graph):
    of_ours = pure(graph)
    assert {one: sorted(found) for one in of_ours
            if (found := graph.find_modules_directly_imported_by(one) - of_ours - PURE_LIBRARY)} == {}


def test_what_decides_is_covered_to_the_last_branch(graph):
    [gate] = re.findall(r"coverage report [^']*--include='([^']*)' --fail-under=100", (ROOT / "Makefile").read_text())
    covered = GlobMatcher(prep_patterns(gate.split(",")))
    decides = [one for one in graph.modules if kind(one) == "rules" or one.startswith("metastore.acid.")]
    assert len(decides) > 40
    assert [one for one in decides if not graph.find_children(one)
            and not covered.match(str(ROOT / (one.replace(".", "/") + ".py")))] == []
