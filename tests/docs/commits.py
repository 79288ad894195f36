"""Check of commit subjects: `python -m tests.docs.commits`, part of `make lint`.

A checkout without git, or too shallow to know the first commit, is not checked.
"""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
FIRST = "715ba7b79f01"     # subjects after it are checked
_ALSO_VERBS = {"Number"}     # ruff's list knows them as nouns
_OTHER_FORM = re.compile(r"(?!(?:Bring|Ping|String|Embed|Feed|Need|Seed|Shed|Speed|Exceed|Proceed|Alias|Bias|Focus)$)\w+(?:ing|ed|[^s]s)$")


def _moods(words: list[str]) -> list[bool]:
    """Tell for each word whether ruff's list of verbs takes it as an imperative: the list that docstrings are held to."""
    code = "".join(f'def f():\n    """{word} it."""\n' for word in words)
    done = subprocess.run([sys.executable, "-m", "ruff", "check", "--isolated", "--select", "D401", "--output-format", "concise", "--stdin-filename", "subjects.py", "-"],
                          input=code, capture_output=True, text=True, check=False)
    wrong = {int(line) for line in re.findall(r"^subjects\.py:(\d+):", done.stdout, re.MULTILINE)}
    return [2 * number not in wrong for number in range(1, len(words) + 1)]


def wrong(subjects: list[str]) -> list[str]:
    """Say of each subject that is not as CONTRIBUTING.md asks what is wrong with it."""
    firsts = [subject.partition(" ")[0] for subject in subjects]
    moods = _moods([first if first.isalpha() else "Add" for first in firsts])
    rules = {"is longer than 72 characters": lambda subject, first, mood: len(subject) > 72,
             "does not begin with a capital letter": lambda subject, first, mood: not subject[:1].isupper(),
             "ends with a full stop": lambda subject, first, mood: subject.endswith("."),
             "does not begin with a verb in the imperative": lambda subject, first, mood: (
                 not (first.isalpha() and (mood or first in _ALSO_VERBS)) or bool(_OTHER_FORM.match(first)))}
    return [f"{subject!r} {what}" for subject, first, mood in zip(subjects, firsts, moods, strict=True)
            for what, breaks in rules.items() if breaks(subject, first, mood)]


def main(root: Path = ROOT) -> int:
    """Print what is wrong with the subjects of commits after the first, merges aside. Return 1 if anything is."""
    try:
        log = subprocess.run(["git", "log", "--no-merges", "--format=%s", f"{FIRST}..HEAD"], cwd=root, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        print(f"Commit subjects are not checked: no git history back to {FIRST} here.")
        return 0
    found = wrong(log.stdout.splitlines())
    for one in found:
        print(f"Commit subject {one}: see CONTRIBUTING.md, Rules that the tools check")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
