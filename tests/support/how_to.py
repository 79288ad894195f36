"""The blocks of a how-to, and of the README, run as they stand there. `tests/docs/test_how_to.py` says which test runs which."""

import os
import re
import shlex
from pathlib import Path
from typing import NamedTuple

from metastore.cli.main import main

ROOT = Path(__file__).parents[2]
PAGES = ROOT / "docs" / "how-to"

NOT_RUN = {  # how a block begins, and why it runs in no test
    "alerts.md": {"$ metastore doctor": "an example of what it says: test_doctor.py has each sentence"},
    "who-is-it.md": {"<property>": "test_hives_client.py serves with these keys", "$ pip install": "it installs; test_hives_client.py serves"},
    "README.md": {"flowchart LR": "a picture", "make setup": "the targets of this Makefile: test_make_targets_that_are_named_exist"},
    "kubernetes.md": {"docker build": "Docker: make images-check replays both files without it", "kubectl create namespace": "a cluster: make cluster-check runs its helm"},
    "machines.md": {"docker compose": "Docker"},
    "why-is-it-not-compacted.md": {"$ metastore compaction explain": "it tells of a cleaning that waits: test_compaction_answers.py has each of its lines"},
    "read-without-spark.md": {"import duckdb": "neither DuckDB nor Polars is among the packages of the tests"},
}


class Block(NamedTuple):
    """A fenced block: its language, "" if none is named."""

    language: str
    text: str


def path_of(page):
    return ROOT / page if page == "README.md" else PAGES / page


def all_blocks(page):
    return [Block(*found) for found in re.findall(r"^ *```(\w*)\n(.*?)^ *```", path_of(page).read_text(), re.MULTILINE | re.DOTALL)]


def why_not_run(page, block):
    """Return the reason why a block does not run; None if it runs."""
    return next((why for start, why in NOT_RUN.get(page, {}).items() if block.text.startswith(start)), None)


def blocks(page, *languages):
    """Return the texts of the blocks of these languages that run."""
    return [block.text for block in all_blocks(page) if block.language in languages and why_not_run(page, block) is None]


def follow(page, places, **run):
    """Run the page's blocks from the first to the last, by ``run[language]``, with what is elsewhere in a test: each of ``places`` must be on the page."""
    missing = dict(places)
    for block in all_blocks(page):
        if why_not_run(page, block) is not None:
            continue
        text = block.text
        for written, here in places.items():
            if written in text:
                missing.pop(written, None)
                text = text.replace(written, str(here() if callable(here) else here))
        try:
            run[block.language or "text"](text)
        except Exception as error:
            raise AssertionError(f"{page}:\n{text}\n{type(error).__name__}: {error}") from error
    assert not missing, f"{page} lacks {', '.join(missing)}"


def statements(block):
    """Return the statements of a block of SQL, without the comments behind them."""
    return [text.strip() for text in re.split(r"; *(?:--.*)?(?:\n|$)", block) if text.strip()]


def commands(page, program="metastore"):
    """Return the words of each command of the page that begins with ``program``."""
    lines = "".join(block.text for block in all_blocks(page) if block.language == "sh").replace("\\\n", " ").splitlines()
    return [words for line in lines if (words := shlex.split(os.path.expandvars(line), comments=True)) and words[0] == program]


def run(page):
    """Run them in this process, one after the other; their exit codes."""
    codes = []
    for _, *words in commands(page):
        try:
            main(words)
            codes.append(0)
        except SystemExit as end:
            codes.append(end.code or 0)
    return codes
