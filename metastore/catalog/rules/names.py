"""Names: which are acceptable, which directory they get, and what a name pattern matches.

Source: CAT-N1, CAT-N2, CAT-N4, CAT-N7, CAT-N9.
"""

import re
from itertools import takewhile

from metastore.errors import InvalidRequestError

_PLAIN = re.compile(r"[a-z0-9_]+")
_WITH_SLASH = re.compile(r"[a-z0-9_/]+")
_ESCAPED_IN_REGEX = re.compile(r"[^a-z0-9_/ ]")
_ANY = re.compile(r"((?:\.?\*)+|\.)")
_NOT_ASCII = re.compile(r"[^\x01-\x7e].*", re.DOTALL)
MATCHES_NOTHING = "^$"
LONGEST_PATTERN = 4000


def is_object_name(name: str, *, slash: bool = False) -> bool:
    """Whether a lower-case name is acceptable; ``slash``: for databases and tables, where ``/`` may be allowed."""
    return (_WITH_SLASH if slash else _PLAIN).fullmatch(name) is not None


def directory_name(table: str) -> str:
    """Return the directory of a table below its database's (Hive: every odd character becomes ``-<code>-``)."""
    return re.sub(r"[^a-z0-9_]", lambda match: f"-{ord(match[0])}-", table.lower())


def pattern_regex(pattern: str | None) -> str | None:
    """Return a regular expression for a client's name pattern; None: every name.

    ``*`` and ``.*`` are any run, ``.`` is one character, ``|`` separates alternatives, nothing else is special.
    It is for PostgreSQL's matching, which does not go back over what it has tried.
    Raises: InvalidRequestError for a pattern that is too long: the work to read it grows faster than its length.
    """
    if pattern is None:
        return None
    alternatives = _alternatives(pattern)
    return f"^({'|'.join(map(_alternative, alternatives))})$" if alternatives else MATCHES_NOTHING


def pattern_range(pattern: str | None) -> tuple[str, str | None]:
    """Where the names that a pattern matches are among all, sorted by bytes: from the first on, below the second.

    None: there is no end. It is the range of what all alternatives begin with. Raises: as ``pattern_regex``.
    """
    begins = [_ANY.split(text, maxsplit=1)[0] for text in _alternatives(pattern or "*")] or [""]
    common = takewhile(lambda pair: pair[0] == pair[1], zip(min(begins), max(begins), strict=False))
    prefix = _NOT_ASCII.sub("", "".join(character for character, _ in common))
    return (prefix, prefix[:-1] + chr(ord(prefix[-1]) + 1)) if prefix else ("", None)


def is_prefix(pattern: str | None) -> bool:
    """Return True if a pattern matches all names of its range: what they begin with, and then anything.

    Raises: as ``pattern_regex``.
    """
    match _parts(pattern):
        case [begin, run, ""]:
            return run.endswith("*") and not _NOT_ASCII.search(begin)
        case _:
            return False


def only_name(pattern: str | None) -> str | None:
    """Return the name that a pattern is, or None if it may match others. Raises: as ``pattern_regex``."""
    match _parts(pattern):
        case [name]:
            return name
        case _:
            return None


def _parts(pattern: str | None) -> list[str]:
    """Return what stands beside wildcards, and these; nothing where there are several alternatives."""
    alternatives = _alternatives("*" if pattern is None else pattern)
    return _ANY.split(alternatives[0]) if len(alternatives) == 1 else []


def _alternatives(pattern: str) -> list[str]:
    if len(pattern) > LONGEST_PATTERN or "\0" in pattern:
        raise InvalidRequestError(
            f"A name pattern has at most {LONGEST_PATTERN} characters and no NUL, this one has {len(pattern)}: "
            f"{pattern[:40]!r} ..."
        )
    alternatives = pattern.strip().lower().split("|")
    return alternatives if alternatives[-1] else alternatives[:-1]


def _alternative(text: str) -> str:
    parts = _ANY.split(text)  # neighbours become a single run: PostgreSQL takes 20 s for 2,000
    return "".join(
        ".*"
        if part.endswith("*")
        else "."
        if part == "."
        else _ESCAPED_IN_REGEX.sub(lambda match: f"\\{match[0]}", part)
        for part in parts
    )
