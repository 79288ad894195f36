"""The index of decisions, docs/adr/README.md, made of what each decision says below its title.

Below the title stand ``- Date:`` (when it was taken) and ``- Theme:``. Every decision that is there holds.
"""

import re
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import NamedTuple

DECISIONS = Path(__file__).parents[2] / "docs" / "adr"
THEMES = ("Transactions and write ids", "Locks", "Compaction", "Cleaning and retention", "Files", "Catalog", "Server and wire",
          "Planner and Spark", "Security", "Operations", "Project")

_HEAD = re.compile(r"# (?P<number>\d+)\. (?P<title>.+)\n\n- Date: (?P<date>.+)\n- Theme: (?P<theme>.+)\n")


class Decision(NamedTuple):
    """One decision, as its page says."""

    number: int
    title: str
    date: date
    theme: str
    file: str


class MalformedDecisionError(ValueError):
    """A page of a decision lacks something that the index needs."""


def decision(name: str, text: str) -> Decision:
    """Read a page. Raises: MalformedDecisionError."""
    head = _HEAD.match(text)
    if head is None:
        raise MalformedDecisionError(f"docs/adr/{name}: below the title '# N. ...' and an empty line write '- Date: YYYY-MM-DD' "
                                     f"and '- Theme: ...', one of {', '.join(THEMES)}")
    if head["number"] != str(int(name[:4])):
        raise MalformedDecisionError(f"docs/adr/{name}: its title has the number {head['number']}")
    if head["theme"] not in THEMES:
        raise MalformedDecisionError(f"docs/adr/{name}: {head['theme']!r} is none of the themes {', '.join(THEMES)}")
    try:
        taken = date.fromisoformat(head["date"])
    except ValueError:
        raise MalformedDecisionError(f"docs/adr/{name}: {head['date']!r} is no date; write YYYY-MM-DD") from None
    return Decision(int(head["number"]), head["title"], taken, head["theme"], name)


def decisions() -> list[Decision]:
    """Read all pages, by number. Raises: MalformedDecisionError."""
    return [decision(path.name, path.read_text(encoding="utf-8")) for path in sorted(DECISIONS.glob("[0-9]*.md"))]


def page() -> Iterator[str]:
    """Write the index: by theme, in each by number."""
    found = decisions()
    yield """# Decisions

Why things are as they are, a page each: the context, the decision, why not the alternatives, and what follows. Every decision here holds.
Facts about Hive are in [docs/spec](../spec/README.md) instead.

A new decision takes the next free number; `make docs` adds it here. One that no longer holds is rewritten or removed, and its number is not
used again: `git log --diff-filter=D -- docs/adr` finds what was removed.
"""
    for theme in THEMES:
        yield f"\n## {theme}\n\n| | Decision | Date |\n|---|---|---|\n"
        for one in found:
            if one.theme == theme:
                yield f"| {one.number} | [{one.title}]({one.file}) | {one.date} |\n"
