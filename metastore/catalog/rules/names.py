"""Names: which are acceptable, which directory they get, and what a name pattern matches.

Source: catalog.md §0.2, §0.3.
"""

import re

_PLAIN = re.compile(r"[a-z0-9_]+")
_WITH_SLASH = re.compile(r"[a-z0-9_/]+")
_ESCAPED_IN_REGEX = re.compile(r"[^a-z0-9_/ ]")
MATCHES_NOTHING = "^$"


def is_object_name(name: str, *, slash: bool = False) -> bool:
    """Whether a lower-case name is acceptable; ``slash``: for databases and tables, where ``/`` may be allowed."""
    return (_WITH_SLASH if slash else _PLAIN).fullmatch(name) is not None


def directory_name(table: str) -> str:
    """The directory of a table below its database's (Hive: every odd character becomes ``-<code>-``)."""
    return re.sub(r"[^a-z0-9_]", lambda found: f"-{ord(found[0])}-", table.lower())


def pattern_regex(pattern: str | None) -> str | None:
    """A regular expression (PostgreSQL's and Python's) for a client's name pattern; None: every name.

    ``*`` and ``.*`` are any run, ``.`` is one character, ``|`` separates alternatives, nothing else is special.
    """
    if pattern is None:
        return None
    alternatives = pattern.strip().lower().split("|")
    if not alternatives[-1]:
        alternatives.pop()
    if not alternatives:
        return MATCHES_NOTHING
    return f"^({'|'.join(_alternative(text) for text in alternatives)})$"


def _alternative(text: str) -> str:
    parts = re.split(r"(\.?\*|\.)", text)
    special = {"*": ".*", ".*": ".*", ".": "."}
    return "".join(special.get(part) or _ESCAPED_IN_REGEX.sub(lambda found: f"\\{found[0]}", part) for part in parts)
