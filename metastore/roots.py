"""The roots of a process: it may make, move, empty or remove only directories below them, links and ``..`` resolved.

Rule: paths that a client names are changed only below roots, and a planner reads them only there and in more listed
places. There are two checks: ``covers`` compares texts and touches nothing, so that it can be asked while a database
lock is held; ``require`` also follows the links of the local disk, and stands right before each change (ADR 0039).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

KEY = "metastore.warehouse.roots"
READABLE = "metastore.warehouse.readable"
_SAME_STORE = {"s3a": "s3", "s3n": "s3", "abfss": "abfs", "wasbs": "wasb"}


class OutsideError(PermissionError):
    """Error: this process may not change a directory. ``str(error)`` has the reason, and the setting that allows it."""


def local_path(uri: str) -> Path | None:
    """Return the path on this machine for ``/x``, ``file:/x``, ``file:///x``, ``file://localhost/x``.

    None elsewhere.
    """
    scheme, _, rest = uri.partition(":") if ":" in uri.split("/", 1)[0] else ("file", "", uri)
    if scheme.lower() != "file":
        return None
    if rest.startswith("//") and not rest.startswith("///"):
        host, _, rest = rest[2:].partition("/")
        if host not in ("", "localhost"):
            raise OSError(f"{uri}: files of another machine cannot be reached")
        rest = f"/{rest}"
    if not rest.startswith("/"):
        raise OSError(f"{uri}: not an absolute path")
    return Path(rest)


def scheme_of(uri: str) -> str:
    """Return the scheme, in lower case; ``file`` for a bare path."""
    first = uri.split("/", 1)[0]
    return first.split(":", 1)[0].lower() if ":" in first else "file"


def host_of(uri: str) -> str:
    """Return the host that answers for a location, for people: ``hdfs://name:8020``, ``s3://bucket``, ``file:``."""
    scheme = scheme_of(uri)
    host = uri.partition("://")[2].split("/", 1)[0] if "://" in uri else ""
    scheme = _SAME_STORE.get(scheme, scheme)
    return f"{scheme}://{host}" if host and scheme != "file" else f"{scheme}:"


def spellings(uri: str) -> list[str]:
    """Return a location with each scheme that leads to the same store: ``s3://``, ``s3a://`` and ``s3n://`` are one."""
    scheme, colon, rest = uri.partition(":")
    store = _SAME_STORE.get(scheme, scheme)
    if not colon:
        return [uri]
    return [f"{each}:{rest}" for each in (store, *(each for each, of in _SAME_STORE.items() if of == store))]


@dataclass(frozen=True)
class Roots:
    """``directories``: locations as the settings have them."""

    directories: tuple[str, ...]

    def covers(self, location: str, *, inside: bool = False) -> bool:
        """Return True if the text of a location is below a root; ``inside``: and is not the root itself.

        No file is touched.
        """
        parts = parts_of(location)
        return parts is not None and any(_is_below(parts, root, inside=inside) for root in self._parts())

    def above(self, location: str) -> str | None:
        """Return the first root above a stored location, in the location's spelling; None: there is none."""
        parts = parts_of(location) or ()
        found = next((root for root in self._parts() if _is_below(parts, root, inside=True)), None)
        return None if found is None else location.rsplit("/", len(parts) - len(found))[0]

    def require(self, location: str, *, inside: bool = False) -> None:
        """Raise OutsideError for a location that is not below a root, or that a link leads out of it."""
        if not self.covers(location, inside=inside):
            raise OutsideError(refusal(location))
        path = local_path(location)
        if path is None:
            return
        real = path.resolve()
        roots = [root.resolve() for root in map(local_path, self.directories) if root is not None]
        if not any(real.is_relative_to(root) and not (inside and real == root) for root in roots):
            raise OutsideError(f"{location} leads to {real}. {refusal(location)}")

    def _parts(self) -> Iterable[tuple[str, ...]]:
        return [parts for parts in map(_parts, self.directories) if parts is not None]


def refusal(location: str) -> str:
    """Return the message for a location outside."""
    return (
        f"{location} does not lie inside the warehouse: nothing is made, moved, emptied or removed there unless "
        f"{KEY} lists a directory above it"
    )


def parts_of(location: str) -> tuple[str, ...] | None:
    """Return file system and names of a location, equal for all its spellings; None if it is invalid."""
    try:
        return _parts(location)
    except OSError:
        return None


def _parts(location: str) -> tuple[str, ...] | None:
    """Return file system and names of a location, equal for all its spellings; None if a name is ``.`` or ``..``."""
    store: tuple[str, ...]
    path = local_path(location)
    if path is not None:
        store, text = ("file",), str(path)
    else:
        scheme, _, rest = location.partition(":")
        host, _, text = rest.removeprefix("//").partition("/")
        store = (_SAME_STORE.get(scheme.lower(), scheme.lower()), host)
    names = tuple(name for name in text.split("/") if name)
    return None if {".", ".."}.intersection(names) else (*store, *names)


def _is_below(parts: tuple[str, ...], root: tuple[str, ...], *, inside: bool) -> bool:
    return parts[: len(root)] == root and (len(parts) > len(root) or not inside)
