"""Whatever code, tests, stories and pages refer to is there: facts, decisions, pages, files, cases."""

import re

import pytest

from tests.docs import cases, spec
from tests.support.scripts import SCRIPTS, all_scripts

CASES = {line.split()[0] for line in (SCRIPTS / "CASES").read_text(encoding="utf-8").splitlines() if not line.startswith("#")}
WITH_CASES = ("tests/unit/locks/", "tests/unit/txns/", "tests/unit/write_ids/", "tests/integration/locks/", "tests/integration/txns/",
              "tests/integration/write_ids/", "tests/integration/client/", "tests/integration/housekeeping/", "tests/integration/materialized_views/",
              "tests/scripts/")


def test_every_reference_leads_somewhere():
    assert [found for path, text in spec.texts().items() if not path.startswith("tests/docs/")
            for found in spec.dangling(path, text)] == []


@pytest.mark.parametrize(("planted", "missing"), [
    ("waits for earlier ones (LOCK-999)", ["LOCK-999"]), ("the matrix: LOCK-1, CAT-V1 to CAT-V11", []),
    ("CAT-139 to CAT-143, CAT-266 to CAT-268", ["CAT-267", "CAT-268"]), ("WID-9 to WID-3", ["WID-9 to WID-3"]),
    ("see ADR 9999", ["ADR 9999"]), ("see ADR 0003, ADR 12 and 13", []), ("ADR 7, 9998", ["ADR 9998"]),
    ("Decisions 7 and 9998 hold, and decision 9997", ["ADR 9998", "ADR 9997"]),
    ("docs/how-to/no-such-page.md has more", ["docs/how-to/no-such-page.md"]), ("docs/how-to/tls.md has more", []),
    ("see metastore/locks/rules.py, tests/unit/locks/ and tests/docs/spec", []), ("in metastore/locks/rule.py", ["metastore/locks/rule.py"]),
    ("as performance.md says", []), ("as nowhere.md says", ["nowhere.md"]),
    ("(nowhere.md \N{SECTION SIGN}4.7)", ["nowhere.md", "\N{SECTION SIGN}4, a section of no page here"])])
def test_a_reference_that_leads_nowhere_is_found(planted, missing):
    assert {one.name for one in spec.dangling("metastore/locks/rules.py", planted)} == set(missing)


def test_a_fact_is_written_down_once():
    assert {name: rows for name, rows in spec.facts().items() if len(rows) > 1} == {}
    assert len(spec.facts()) > 300


def test_every_fact_is_needed_by_something():
    used = {name for path, text in spec.texts().items() if not path.startswith(("docs/spec/", "tests/docs/"))
            for name in spec.facts_named(text)}
    context = {name for name, rows in spec.facts().items() if "(context)" in rows[0]}

    assert sorted(spec.facts().keys() - used - context) == []


def test_every_case_of_compaction_is_proven_by_a_test():
    there = {case for case in spec.facts() if re.fullmatch(r"COMP-[IQWC]\d\d", case)}

    assert len(there) > 100
    assert sorted(there - cases.tests_by_case().keys()) == []


def test_every_story_names_its_facts():
    assert [path.name for path in all_scripts() if not path.read_text(encoding="utf-8").startswith("# Facts: ")] == []


def test_every_page_of_facts_is_listed():
    contents = (spec.SPEC / "README.md").read_text(encoding="utf-8")

    assert [page.name for page in spec.SPEC.glob("*.md") if page.name != "README.md" and f"]({page.name})" not in contents] == []


def test_every_case_that_a_test_names_is_in_the_catalogue():
    named = {(case, path) for path, text in spec.texts().items() if path.startswith(WITH_CASES) and path != "tests/scripts/CASES"
             for line in text.splitlines() if "#" in line or '"""' in line
             for case in re.findall(r"(?<![-\w])[THLCWMDEZ]\d\d\b", line.partition("#")[2] or line)}

    assert sorted((case, path) for case, path in named if case not in CASES) == []
