"""The Dockerfiles of deploy/images, line by line."""

import re
from collections.abc import Iterator
from pathlib import Path

IMAGES = Path(__file__).parents[2] / "deploy" / "images"


def instructions(image: str) -> Iterator[tuple[str, str]]:
    """(name, what it says) of each instruction."""
    text = re.sub(r"^\s*#.*\n", "", (IMAGES / f"{image}.Dockerfile").read_text(), flags=re.MULTILINE)
    for line in filter(str.strip, text.replace("\\\n", " ").splitlines()):
        name, _, rest = line.strip().partition(" ")
        yield name, rest.strip()
