"""Locations: one spelling for each directory, and the rule that says which location lies below which.

A stored location is what Hadoop's Path prints: no trailing and no doubled slash, no ``.`` and ``..``, ``file:/x`` for
the local disk, always with the scheme (and authority) of a file system. Source: CAT-N8.
"""

import re
from collections.abc import Iterable, Iterator
from itertools import takewhile

from metastore.errors import MetaError

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(?:(//[^/]*))?(.*)", re.DOTALL)
_SLASHES = re.compile(r"/{2,}")


def qualified(location: str, root: str) -> str:
    """Return the stored spelling of ``location``; without a scheme it is on the file system of ``root``."""
    match = _SCHEME.fullmatch(location)
    if match is None:
        if not location.startswith("/"):
            raise MetaError(f"{location!r} is not a location: it must be an absolute path or a URI with a scheme")
        return qualified(file_system(root) + location, root)
    scheme, authority, path = match[1], match[2] or "", match[3]
    if not path.startswith("/"):
        if path or not authority:
            raise MetaError(f"{location!r} is not a location: the path after the scheme must begin with a slash")
        path = "/"
    path = _resolved(_SLASHES.sub("/", path), location)
    if len(path) > 1:
        path = path.rstrip("/")
    scheme = scheme.lower()
    if authority == "//" or (scheme == "file" and authority.lower() == "//localhost"):
        authority = ""
    return f"{scheme}:{authority}{path}"


def _resolved(path: str, location: str) -> str:
    """Return the path without ``.`` and ``..``."""
    names: list[str] = []
    for name in path.split("/")[1:]:
        if name == ".." and not names:
            raise MetaError(f"{location!r} is not a location: its .. leads above the root of the file system")
        if name == "..":
            names.pop()
        elif name != ".":
            names.append(name)
    return "/" + "/".join(names)


def file_system(location: str) -> str:
    """Return the scheme and authority: ``file:``, ``hdfs://name:8020``; a bare path is on the local disk."""
    match = _SCHEME.fullmatch(location)
    if match is None:
        return "file:"
    authority = match[2] or ""
    return f"{match[1]}:{'' if authority == '//' else authority}"


def is_root(location: str) -> bool:
    """Return True if a stored location is the root of its file system."""
    return location == f"{file_system(location)}/"


def around(location: str) -> list[str]:
    """Return a stored location and every directory that it lies in."""
    names = location.split("/")
    return ["/".join(names[:count]) for count in range(len(names), 0, -1)]


def seen_from(location: str) -> list[str]:
    """Return a stored location and the directories whose readers see its files: none above a hidden name."""
    seen = []
    for directory in around(location):
        seen.append(directory)
        if directory.rpartition("/")[2].startswith((".", "_")):
            break
    return seen


def is_below(location: str, directory: str) -> bool:
    """Return True if a stored location is the directory or lies inside it."""
    return location == directory or location.startswith(directory.rstrip("/") + "/")


def common(places: Iterable[str]) -> str:
    """Return the innermost directory that contains all places or is one of them; "" if there is none."""
    split = [place.split("/") for place in places]
    pairs = zip(min(split), max(split), strict=False)
    return "/".join(name for name, _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def outermost(places: Iterable[str]) -> list[str]:
    """Return the stored locations that lie inside no other of the list, in order."""
    known = set(places)
    return sorted(place for place in known if known.isdisjoint(_around(place)))


def overlapping(places: Iterable[str], others: Iterable[str]) -> str | None:
    """Return the first of some stored locations that equals, contains or lies inside one of ``others``."""
    known = set(others)
    above = {outer for other in known for outer in _around(other)}
    hits = (place for place in places if place in known or place in above or not known.isdisjoint(_around(place)))
    return min(hits, default=None)


def _around(place: str) -> Iterator[str]:
    """Yield the directories that contain a stored location; the root of a file system ends with a slash."""
    for at, character in enumerate(place[:-1]):
        if character == "/":
            yield from (place[:at], place[: at + 1])


def child(directory: str, name: str) -> str:
    """Return the path of a name directly below a directory."""
    return f"{directory.rstrip('/')}/{name}"
