"""Partition names: ``key=value/key=value``, as they stand in the catalog, in locks and in directories.

Rule: the name is the identity of a partition. It is case-sensitive in its values, lower case in its keys, and ``""``
and the default token are one value. Escaping is Hive's (FileUtils.escapePathName): one ``%XX`` per listed character,
never per UTF-8 byte.
"""

import re
from collections.abc import Iterable, Sequence

DEFAULT_PARTITION = "__HIVE_DEFAULT_PARTITION__"

_TO_ESCAPE = re.compile("[\x00-\x1f\x7f\"#%'*/:=?\\\\{\\[\\]^]")
_ESCAPED = re.compile(r"%([0-9A-Fa-f]{2})")
_PAIR = re.compile(r"([^/]+)=([^/]+)", re.DOTALL)


def escape(text: str) -> str:
    """Return the spelling of a key or a non-empty value inside a name: ``a/b`` → ``a%2Fb``."""
    return _TO_ESCAPE.sub(lambda match: f"%{ord(match[0]):02X}", text)


def unescape(text: str) -> str:
    """Return the opposite of ``escape``; a ``%`` without two hexadecimal digits stands for itself."""
    return _ESCAPED.sub(lambda match: chr(int(match[1], 16)), text)


def make_name(keys: Sequence[str], values: Sequence[str | None], default: str = DEFAULT_PARTITION) -> str:
    """Return the name for as many values as keys; a null or empty value is written as ``default``."""
    return "/".join(
        f"{escape(key.lower())}={escape(value or default)}" for key, value in zip(keys, values, strict=True)
    )


def parse_name(name: str) -> list[tuple[str, str]]:
    """Return the (key, value) pairs of a name, unescaped.

    Segments that are not ``key=value`` are left out (Hive does so).
    """
    pairs = (_PAIR.fullmatch(segment) for segment in name.split("/"))
    return [(unescape(pair[1]), unescape(pair[2])) for pair in pairs if pair]


def values_for(keys: Iterable[str], name: str) -> list[str] | None:
    """Return the values of these keys in a name, in the keys' order.

    Extra segments are ignored, None if a key is missing.
    """
    by_key = dict(parse_name(name))
    values = [by_key.get(key) for key in keys]
    return None if None in values else [value for value in values if value is not None]


def canonical(name: str) -> str:
    """Return the stored spelling of a name that came from a client: keys lower case, escapes as ``escape`` writes them.

    A name with a segment that is not ``key=value`` is returned as it is. Applying it twice changes nothing.
    """
    segments = [segment for segment in name.split("/") if segment]
    pairs = parse_name(name)
    if not pairs or len(pairs) != len(segments):
        return name
    return "/".join(f"{escape(key.lower())}={escape(value)}" for key, value in pairs)
