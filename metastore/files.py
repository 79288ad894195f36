"""Directories and files wherever tables live: the local disk, S3, Google storage, Azure, HDFS.

Rule: a location is Hive's text, never decoded (``%3A`` in a partition's directory is four characters on disk) and never
a working-directory relative path. One listing per directory tree, never one per directory. Errors are ``OSError``,
whatever the store. Object stores have no directories: making one there is nothing, and removing an absent one is fine
everywhere.
"""

import shutil
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from os import scandir
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple
from urllib.parse import urlsplit

import fsspec

_FSSPEC_SCHEME = {"s3a": "s3", "s3n": "s3", "gs": "gs", "abfs": "abfs", "abfss": "abfs", "wasb": "abfs",
                  "wasbs": "abfs", "hdfs": "hdfs", "viewfs": "hdfs"}
_OBJECT_STORES = {"s3", "gs", "abfs"}


class FileEntry(NamedTuple):
    """A file or directory below a listed one; ``path`` is relative to that, with ``/`` between its parts."""

    path: str
    size: int
    is_dir: bool


def local_path(uri: str) -> Path | None:
    """The path on this machine for ``/x``, ``file:/x``, ``file:///x``, ``file://localhost/x``; None elsewhere."""
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


@dataclass(frozen=True)
class Files:
    """Every file system by URI. ``options``: keyword arguments for fsspec, by scheme."""

    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def mkdirs(self, uri: str) -> bool:
        """Make a directory and its parents; True if it was not there before (then the caller may undo it)."""
        path = local_path(uri)
        if path is not None:
            existed = path.is_dir()
            path.mkdir(parents=True, exist_ok=True)
            return not existed
        store, key = self._remote(uri)
        if store.protocol_name in _OBJECT_STORES or store.fs.isdir(key):
            return False
        store.fs.makedirs(key, exist_ok=True)
        return True

    def exists(self, uri: str) -> bool:
        """Whether a file or directory is there."""
        path = local_path(uri)
        if path is not None:
            return path.exists()
        store, key = self._remote(uri)
        return bool(store.fs.exists(key))

    def read(self, uri: str) -> bytes:
        """The content of a small file (a marker, a JSON)."""
        path = local_path(uri)
        if path is not None:
            return path.read_bytes()
        store, key = self._remote(uri)
        return bytes(store.fs.cat_file(key))

    def open(self, uri: str) -> BinaryIO:
        """A file to read from any position; the caller closes it."""
        path = local_path(uri)
        if path is not None:
            return path.open("rb")
        store, key = self._remote(uri)
        opened: BinaryIO = store.fs.open(key, "rb")
        return opened

    def write(self, uri: str, content: bytes) -> None:
        """Make a small file with its parents; what was there is replaced."""
        path = local_path(uri)
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
            return
        store, key = self._remote(uri)
        if store.protocol_name not in _OBJECT_STORES:
            store.fs.makedirs(key.rsplit("/", 1)[0], exist_ok=True)
        store.fs.pipe_file(key, content)

    def create(self, uri: str) -> BinaryIO:
        """A new file to write from its beginning to its end, with its parents; the caller closes it.

        Raises: FileExistsError.
        """
        path = local_path(uri)
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            return path.open("xb")
        store, key = self._remote(uri)
        if store.fs.exists(key):
            raise FileExistsError(f"{uri} exists")
        if store.protocol_name not in _OBJECT_STORES:
            store.fs.makedirs(key.rsplit("/", 1)[0], exist_ok=True)
        created: BinaryIO = store.fs.open(key, "wb")
        return created

    def delete(self, uri: str, *, recursive: bool = True) -> None:
        """Remove a file or directory; absent is fine. Without ``recursive`` only a file or an empty directory."""
        path = local_path(uri)
        if path is not None:
            _delete_local(path, recursive=recursive)
            return
        store, key = self._remote(uri)
        if store.fs.exists(key):
            if not recursive and store.fs.isdir(key) and store.fs.ls(key):
                raise OSError(f"{uri}: directory is not empty")
            store.fs.rm(key, recursive=True)

    def delete_children(self, uri: str) -> None:
        """Empty a directory and keep it; absent is fine."""
        path = local_path(uri)
        if path is not None:
            for child in list(path.iterdir()) if path.is_dir() else []:
                _delete_local(child, recursive=True)
            return
        store, key = self._remote(uri)
        if store.fs.isdir(key):
            for child in store.fs.ls(key, detail=False):
                store.fs.rm(child, recursive=True)

    def rename(self, source: str, target: str) -> None:
        """Move a directory or file to a place that is free; the target's parent is made if needed.

        One step on a disk and on HDFS; on an object store a copy followed by a removal.
        """
        if self.exists(target):
            raise FileExistsError(f"{target} exists")
        path, to = local_path(source), local_path(target)
        if path is not None and to is not None:
            to.parent.mkdir(parents=True, exist_ok=True)
            shutil.move(path, to)
            return
        store, key = self._remote(source)
        other, to_key = self._remote(target)
        if (store.protocol_name, urlsplit(source).netloc) != (other.protocol_name, urlsplit(target).netloc):
            raise OSError(f"{source} cannot be moved to {target}: another file system")
        if store.protocol_name not in _OBJECT_STORES:
            store.fs.makedirs(to_key.rsplit("/", 1)[0], exist_ok=True)
        store.fs.mv(key, to_key, recursive=True)

    def listing(self, uri: str) -> list[FileEntry]:
        """Everything below a directory, sorted by path; [] if there is none."""
        path = local_path(uri)
        if path is not None:
            entries: list[FileEntry] = []
            _walk_local(str(path), "", entries)
            return sorted(entries)
        store, key = self._remote(uri)
        root = str(store.fs._strip_protocol(key)).rstrip("/") + "/"  # noqa: SLF001 - fsspec's own way to compare names
        found: dict[str, dict[str, Any]] = store.fs.find(key, withdirs=True, detail=True)
        return sorted(FileEntry(name.removeprefix(root).rstrip("/"), int(info.get("size") or 0),
                                info["type"] == "directory")
                      for name, info in found.items() if name.rstrip("/") + "/" != root)

    def children(self, uri: str) -> list[str]:
        """The names directly below a directory, sorted; [] if there is none."""
        path = local_path(uri)
        if path is not None:
            return sorted(child.name for child in path.iterdir()) if path.is_dir() else []
        store, key = self._remote(uri)
        if not store.fs.isdir(key):
            return []
        return sorted(str(child).rstrip("/").rsplit("/", 1)[-1] for child in store.fs.ls(key, detail=False))

    def _remote(self, uri: str) -> tuple["_Store", str]:
        scheme = urlsplit(uri).scheme.lower()
        name = _FSSPEC_SCHEME.get(scheme, scheme)
        try:
            fs, key = fsspec.core.url_to_fs(f"{name}{uri[len(scheme):]}", **self.options.get(scheme, {}))
        except (ImportError, ValueError) as error:
            raise OSError(f"{uri}: no file system for {scheme!r} here: {error}") from error
        return _Store(name, fs), key


class _Store(NamedTuple):
    protocol_name: str
    fs: Any


def _delete_local(path: Path, *, recursive: bool) -> None:
    if path.is_dir() and not path.is_symlink():
        if recursive:
            shutil.rmtree(path)
        else:
            path.rmdir()
    else:
        path.unlink(missing_ok=True)


def _walk_local(directory: str, prefix: str, found: list[FileEntry]) -> None:
    """Add everything below a directory. What is a file or a directory is known without asking for it, a size is not."""
    try:
        entries = list(scandir(directory))
    except (FileNotFoundError, NotADirectoryError):
        return
    for entry in entries:
        path = prefix + entry.name
        if entry.is_dir():
            found.append(FileEntry(path, 0, is_dir=True))
            _walk_local(entry.path, path + "/", found)
        else:
            with suppress(FileNotFoundError):  # removed while being listed
                found.append(FileEntry(path, entry.stat().st_size, is_dir=False))
