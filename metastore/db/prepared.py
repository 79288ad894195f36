"""Prepared statements, which PostgreSQL plans once for each connection instead of once for each call.

Planning a statement of the hot calls takes longer than executing it. `Prepared` holds SQL text as stores write it, with
psycopg2's ``%(name)s`` placeholders; a connection that meets it for the first time prepares it in the same message in
which it executes it, so there is never a round trip for that. The plans are generic, made for any parameters (see
`sessions.PLANNING`), so a parameter's type must be clear from its place, or by a cast (``%(ids)s::bigint[]``).
"""

import re
from itertools import count
from typing import NamedTuple

_PLACEHOLDER = re.compile(r"%\((\w+)\)s(::\w+(?:\[\])?)?")
_numbers = count(1)


class Statement(NamedTuple):
    """A statement: its name within a connection, its PREPARE and its EXECUTE."""

    name: str
    prepare: str
    execute: str


class Prepared:
    """SQL statements that run one after the other in one round trip."""

    __slots__ = ("execute", "names", "statements")

    def __init__(self, *texts: str) -> None:
        """Prepare SQL statements, each without a semicolon."""
        self.statements = tuple(_statement(f"s{next(_numbers)}", text) for text in texts)
        self.names = frozenset(statement.name for statement in self.statements)
        self.execute = "; ".join(statement.execute for statement in self.statements)

    def introduction(self, known: set[str]) -> str:
        """Return ``execute`` for a connection that has prepared only the ``known`` statements."""
        return "; ".join(
            statement.execute if statement.name in known else f"{statement.prepare}; {statement.execute}"
            for statement in self.statements
        )


def _statement(name: str, text: str) -> Statement:
    casts: dict[str, str] = {}
    for parameter, cast in _PLACEHOLDER.findall(text):
        casts[parameter] = casts.get(parameter) or cast
    places = {parameter: place for place, parameter in enumerate(casts, 1)}
    body = _PLACEHOLDER.sub(lambda match: f"${places[match[1]]}{match[2] or ''}", text)
    arguments = ", ".join(f"%({parameter})s{cast}" for parameter, cast in casts.items())
    return Statement(name, f"PREPARE {name} AS {body}", f"EXECUTE {name}({arguments})" if casts else f"EXECUTE {name}")
