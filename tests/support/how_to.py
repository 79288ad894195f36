"""The commands of a how-to, run as they stand there: the blocks that begin with ```sh."""

import os
import re
import shlex
from pathlib import Path

from metastore.cli.main import main

PAGES = Path(__file__).parents[2] / "docs" / "how-to"


def commands(page, program="metastore"):
    """The words of each command of the page that begins with ``program``."""
    blocks = re.findall(r"^ *```sh\n(.*?)^ *```", (PAGES / page).read_text(), re.MULTILINE | re.DOTALL)
    lines = "".join(blocks).replace("\\\n", " ").splitlines()
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
