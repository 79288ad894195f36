"""The test catalogue is complete: every case has a script that names it, or a test, and neither is only on paper."""

import re
from collections import Counter

from tests.support.scripts import SCRIPTS, all_scripts

ROOT = SCRIPTS.parents[1]
CATALOGUE = [f"{letter}{number:02}" for letter, count in
             {"T": 33, "H": 15, "L": 48, "C": 30, "W": 31, "M": 8, "D": 4, "E": 2, "Z": 2}.items()
             for number in range(1, count + 1)]
LINES = [line.split(maxsplit=1) for line in (SCRIPTS / "CASES").read_text(encoding="utf-8").splitlines()
         if not line.startswith("#")]


def test_the_list_has_every_case_once():
    assert [case for case, _ in LINES] == CATALOGUE
    assert len(CATALOGUE) == 173


def test_a_case_is_where_the_list_says():
    assert [(case, proof) for case, proofs in LINES if not proofs.startswith("absent: ")
            for proof in proofs.split() if not proves(proof, case)] == []


def test_every_script_is_in_the_list():
    listed = Counter(proof for _, proofs in LINES for proof in proofs.split())

    assert [path for path in all_scripts() if cases_of(path) and str(path.relative_to(SCRIPTS)) not in listed] == []


def cases_of(path):
    """Return the cases that the headings of a script name."""
    headings = re.findall(r"^# ((?:[A-Z]\d\d(?:, )?)+):", path.read_text(encoding="utf-8"), re.MULTILINE)
    return {case for heading in headings for case in heading.split(", ")}


def proves(proof, case):
    """Whether the test is there, or the script is and names the case."""
    path, _, name = proof.partition("::")
    if name:
        return re.search(rf"^def {name}\(", (ROOT / path).read_text(encoding="utf-8"), re.MULTILINE) is not None
    return case in cases_of(SCRIPTS / path)
