"""Names of objects: which names are acceptable, their directories, and the matching of name patterns.

Source: CAT-N1, CAT-N2, CAT-N4, CAT-N7, CAT-N9.
"""

import re
from itertools import takewhile

from metastore.errors import InvalidRequestError
from metastore.ids import TableName

_PLAIN = re.compile(r"[a-z0-9_]+")
_DATABASE = re.compile(r"(?!@)(?!.*/.*\.|.*\..*/)[a-z0-9_/. $@-]+")  # Not both / and ., as in ``../x``.
_TABLE = re.compile(r"[a-z0-9_/. $@:-]+")
_APART = (".", ":")
_ESCAPED_IN_REGEX = re.compile(r"[^a-z0-9_/ ]")
_ANY = re.compile(r"((?:\.?\*)+|\.)")
_NOT_ASCII = re.compile(r"[^\x01-\x7e].*", re.DOTALL)
MATCHES_NOTHING = "^$"
LONGEST_PATTERN = 4000


def is_object_name(name: str) -> bool:
    """Return True if a lower-case name of a catalog or function is acceptable."""
    return _PLAIN.fullmatch(name) is not None


def is_database_name(name: str) -> bool:
    """Return True if a lower-case name of a database is acceptable; with ``@`` first it would name a catalog."""
    return _DATABASE.fullmatch(name) is not None


def is_table_name(name: str) -> bool:
    """Return True if a lower-case name of a table is acceptable."""
    return _TABLE.fullmatch(name) is not None


def is_transactional_name(name: TableName) -> bool:
    """Return True if a table of this name may be transactional: lists of write ids part names by ``.`` and ``:``."""
    return not any(mark in part for part in (name.db, name.table) for mark in _APART)


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
    """Return the range of names, sorted by bytes, that a pattern can match: from the first on, below the second.

    The second is None if there is no end. The range is that of the common prefix of all alternatives.
    Raises: as ``pattern_regex``.
    """
    begins = [_ANY.split(text, maxsplit=1)[0] for text in _alternatives(pattern or "*")] or [""]
    common = takewhile(lambda pair: pair[0] == pair[1], zip(min(begins), max(begins), strict=False))
    prefix = _NOT_ASCII.sub("", "".join(character for character, _ in common))
    return (prefix, prefix[:-1] + chr(ord(prefix[-1]) + 1)) if prefix else ("", None)


def is_prefix(pattern: str | None) -> bool:
    """Return True if a pattern is a prefix and then anything, so that it matches all names of its range.

    Raises: as ``pattern_regex``.
    """
    match _parts(pattern):
        case [begin, run, ""]:
            return run.endswith("*") and not _NOT_ASCII.search(begin)
        case _:
            return False


def only_name(pattern: str | None) -> str | None:
    """Return the only name that a pattern matches, or None if it may match several. Raises: as ``pattern_regex``."""
    match _parts(pattern):
        case [name]:
            return name
        case _:
            return None


def _parts(pattern: str | None) -> list[str]:
    """Split a pattern into literal parts and wildcards; return nothing if there are several alternatives."""
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
    parts = _ANY.split(text)  # Merge neighbouring wildcards: PostgreSQL takes 20 s for 2,000.
    return "".join(
        ".*"
        if part.endswith("*")
        else "."
        if part == "."
        else _ESCAPED_IN_REGEX.sub(lambda match: f"\\{match[0]}", part)
        for part in parts
    )
