"""The index of decisions, docs/adr/README.md, made of what each decision says below its title.

Below the title stand ``- Date:`` (when it was taken), ``- Status:`` and ``- Theme:``. A status begins with "accepted" or with
"superseded by N". What came later of an accepted one follows: "superseded by N in ...", or "rewritten on DATE: ...".
"""

import re
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import NamedTuple

DECISIONS = Path(__file__).parents[2] / "docs" / "adr"
THEMES = ("Database", "Transactions and write ids", "Locks", "Server", "Catalog", "Files", "Spark", "Compaction", "Layout")

_HEAD = re.compile(r"# (?P<number>\d+)\. (?P<title>.+)\n\n- Date: (?P<date>.+)\n- Status: (?P<status>.+)\n- Theme: (?P<theme>.+)\n")
_STATUS = re.compile(r"(accepted|superseded by \d+)(; (superseded by \d+ in .+|rewritten on \d{4}-\d\d-\d\d: .+))*")


class Decision(NamedTuple):
    """One decision, as its page says."""

    number: int
    title: str
    date: date
    status: str
    theme: str
    file: str


class MalformedDecisionError(ValueError):
    """A page of a decision lacks something that the index needs."""


def decision(name: str, text: str) -> Decision:
    """Read a page. Raises: MalformedDecisionError."""
    head = _HEAD.match(text)
    if head is None:
        raise MalformedDecisionError(f"docs/adr/{name}: below the title '# N. ...' and an empty line write '- Date: YYYY-MM-DD', "
                                     f"'- Status: accepted' and '- Theme: ...', one of {', '.join(THEMES)}")
    if head["number"] != str(int(name[:4])):
        raise MalformedDecisionError(f"docs/adr/{name}: its title has the number {head['number']}")
    if head["theme"] not in THEMES:
        raise MalformedDecisionError(f"docs/adr/{name}: {head['theme']!r} is none of the themes {', '.join(THEMES)}")
    if not _STATUS.fullmatch(head["status"]):
        raise MalformedDecisionError(f"docs/adr/{name}: cannot read the status {head['status']!r}; write 'accepted', 'superseded by N', "
                                     "'accepted; superseded by N in ...' or 'accepted; rewritten on DATE: ...'")
    try:
        taken = date.fromisoformat(head["date"])
    except ValueError:
        raise MalformedDecisionError(f"docs/adr/{name}: {head['date']!r} is no date; write YYYY-MM-DD") from None
    return Decision(int(head["number"]), head["title"], taken, head["status"], head["theme"], name)


def decisions() -> list[Decision]:
    """All of them, by number. Raises: MalformedDecisionError."""
    return [decision(path.name, path.read_text(encoding="utf-8")) for path in sorted(DECISIONS.glob("[0-9]*.md"))]


def page() -> Iterator[str]:
    """The index: by theme, in each by number."""
    found = decisions()
    yield """# Decisions

Why things are as they are, a page each: the situation, what was decided, what follows, what was not chosen. Facts about Hive are in
[docs/spec](../spec/README.md) instead. A new decision takes the next free number; `make docs` adds it here.

A decision that no longer holds says by which one it was superseded, as a whole or in what. Others were rewritten where they stand, when nothing
of the old way was worth keeping: these say when, and what the old way was.
"""
    for theme in THEMES:
        yield f"\n## {theme}\n\n| | Decision | Date | Status |\n|---|---|---|---|\n"
        for one in found:
            if one.theme == theme:
                yield f"| {one.number} | [{one.title}]({one.file}) | {one.date} | {_linked(one.status, found)} |\n"


def _linked(status: str, found: list[Decision]) -> str:
    files = {one.number: one.file for one in found}
    return re.sub(r"superseded by (\d+)", lambda match: f"superseded by [{match[1]}]({files[int(match[1])]})", status)
