"""Directories and files wherever tables live: the local disk, S3, Google storage, Azure, HDFS.

Rule: a location is Hive's text, never decoded (``%3A`` in a partition's directory is four characters on disk) and never
a working-directory relative path. One listing per directory tree, never one per directory, and each asks the store:
earlier listings of the process are never reused. Errors are ``OSError``, of every store. Object stores have no
directories: on S3 an empty object stands for a directory that was made, as Hadoop has it, and is no file; on others
nothing is made. Removing what is absent is fine everywhere.
"""

import hashlib
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from os import scandir, utime
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, Protocol, TypeVar
from urllib.parse import urlsplit
from uuid import uuid4

from metastore.object_stores import ObjectStores
from metastore.roots import Roots, local_path

_FSSPEC_SCHEME = {
    "s3a": "s3",
    "s3n": "s3",
    "gs": "gs",
    "abfs": "abfs",
    "abfss": "abfs",
    "wasb": "abfs",
    "wasbs": "abfs",
    "hdfs": "hdfs",
    "viewfs": "hdfs",
}
_OBJECT_STORES = {"s3", "gs", "abfs"}
_ACROSS_BUCKETS = {"s3", "gs"}
_CHANGED = ("LastModified", "last_modified", "mtime", "updated", "created")
"""The names that stores give to the time of a file's last change."""
_AT_A_TIME = 32  # Also the number of copies between two checks of ``going``.
_PATTERN = frozenset("*?[")
"""The characters that fsspec takes for a pattern when it removes; in a location they are ordinary characters."""
T = TypeVar("T")


class FileEntry(NamedTuple):
    """A file or directory below a listed directory; ``path`` is relative to that, with ``/`` between its parts."""

    path: str
    size: int
    is_dir: bool


class Made(NamedTuple):
    """The new directories, and the error that ended the creation of more, if any."""

    new: list[str]
    failed: str = ""
    error: OSError | ValueError | None = None


class FileSystem(Protocol):
    """A file system that changes the files of tables, by URI, with some user's credentials.

    ``Files`` has those of this process; Spark's JVM has its own (``metastore.spark.jvm.hadoop``). A writer of a
    directory renames and removes it through the same one: the other may not be allowed to.
    """

    def exists(self, uri: str, /) -> bool:
        """Return True if a file or directory exists."""

    def rename(self, source: str, target: str, /) -> None:
        """Move a file or directory to a place that is free."""

    def delete(self, uri: str, /) -> None:
        """Remove a file or directory with everything in it; absent is fine."""


@dataclass(frozen=True)
class Files:
    """Every file system by URI: the `FileSystem` of this process, and the way to list and read without a JVM.

    ``stores``: where object stores are, and who asks them. ``roots``: the directories that may be changed; None: all.
    Every change raises OutsideError beyond them. ``cmroot``: the directory for files that a replica may still need; "":
    none.
    """

    stores: ObjectStores = field(default_factory=ObjectStores)
    roots: Roots | None = None
    cmroot: str = ""

    def ask(self, uri: str, question: Callable[[], T], times: float = 1) -> T:  # noqa: ARG002 - see `BoundedFiles`
        """Return the answer to a question for which the file at ``uri`` is opened and read."""
        return question()

    def require_scheme(self, uri: str) -> None:
        """Raise OSError for a scheme that is not allowed; by the text alone."""

    def mkdirs(self, uri: str) -> bool:
        """Make a directory and its parents; True if it was not there before (then the caller may undo it)."""
        path = local_path(uri)
        if path is not None:
            if path.is_dir():
                return False
            self._require_own(uri)
            path.mkdir(parents=True, exist_ok=True)
            return True
        with self._remote(uri) as store:
            if not store.has_directories or store.fs.isdir(store.key):
                return False
            self._require_own(uri)
            store.make_directory()
            return True

    def make_all(self, uris: Sequence[str]) -> Made:
        """Make directories, one after the other, until one cannot be made."""
        new: list[str] = []
        for uri in uris:
            try:
                if self.mkdirs(uri):
                    new.append(uri)
            except (OSError, ValueError) as error:
                return Made(new, uri, error)
        return Made(new)

    def exists(self, uri: str) -> bool:
        """Return True if a file or directory exists."""
        path = local_path(uri)
        if path is not None:
            return path.exists()
        with self._remote(uri) as store:
            return bool(store.fs.exists(store.key))

    def read(self, uri: str) -> bytes:
        """Return the content of a small file (a marker, a JSON)."""
        path = local_path(uri)
        if path is not None:
            return path.read_bytes()
        with self._remote(uri) as store:
            return bytes(store.fs.cat_file(store.key))

    def open(self, uri: str) -> BinaryIO:
        """Open a file to read from any position; the caller closes it."""
        path = local_path(uri)
        if path is not None:
            return path.open("rb")
        with self._remote(uri) as store:
            opened: BinaryIO = store.fs.open(store.key, "rb")
            return opened

    def write(self, uri: str, content: bytes) -> None:
        """Write a small file with its parents; an existing file is replaced."""
        self._require_own(uri)
        path = local_path(uri)
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
            return
        with self._remote(uri) as store:
            store.make_parent()
            store.fs.pipe_file(store.key, content)

    def create(self, uri: str) -> BinaryIO:
        """Open a new file to write from its beginning to its end, with its parents; the caller closes it.

        Raises: FileExistsError.
        """
        self._require_own(uri)
        path = local_path(uri)
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            return path.open("xb")
        with self._remote(uri) as store:
            if store.fs.exists(store.key):
                raise FileExistsError(f"{uri} exists")
            store.make_parent()
            created: BinaryIO = store.fs.open(store.key, "wb")
            return created

    def delete(self, uri: str, *, recursive: bool = True) -> None:
        """Remove a file or directory; absent is fine. Without ``recursive`` only a file or an empty directory."""
        self._require_own(uri, inside=True)
        path = local_path(uri)
        if path is not None:
            _delete_local(path, recursive=recursive)
            return
        with self._remote(uri) as store:
            if not recursive and store.children():
                raise OSError(f"{uri}: directory is not empty")
            store.remove(store.key)

    def delete_children(self, uri: str) -> None:
        """Empty a directory and keep it; absent is fine."""
        self._require_own(uri, inside=True)
        path = local_path(uri)
        if path is not None:
            for child in list(path.iterdir()) if path.is_dir() else []:
                _delete_local(child, recursive=True)
            return
        with self._remote(uri) as store:
            for name in store.children():
                store.remove(f"{store.key.rstrip('/')}/{name}")

    def rename(self, source: str, target: str) -> None:
        """Move a directory or file to a place that is free; the target's parent is made if needed.

        It is one step on a disk and on HDFS; on an object store a copy followed by a removal.
        """
        self._require_own(source, inside=True)
        self._require_own(target, inside=True)
        if self.exists(target):
            raise FileExistsError(f"{target} exists")
        path, to_path = local_path(source), local_path(target)
        if path is not None and to_path is not None:
            to_path.parent.mkdir(parents=True, exist_ok=True)
            shutil.move(path, to_path)
            return
        with self._remote(source) as store, self._remote(target) as to:
            if (store.protocol_name, urlsplit(source).netloc) != (to.protocol_name, urlsplit(target).netloc):
                raise OSError(f"{source} cannot be moved to {target}: another file system")
            to.make_parent()
            store.move(to.key)

    def moves_in_one_step(self, source: str, target: str) -> bool:
        """Return True if ``rename`` is one step of the file system, so that no reader ever sees half of it."""
        path, to_path = local_path(source), local_path(target)
        if path is not None and to_path is not None:
            return _device(path) == _device(to_path)
        with self._remote(source) as store:
            return not store.has_objects

    def copy(self, source: str, target: str, going: Callable[[], None]) -> None:
        """Copy a directory; ``going`` is called before each step, and raises to stop it."""
        self._require_own(target, inside=True)
        path, to_path = local_path(source), local_path(target)
        if path is not None and to_path is not None:

            def copied(file: str, to: str) -> str:
                going()
                return str(shutil.copy2(file, to))

            shutil.copytree(path, to_path, copy_function=copied)
            return
        with self._remote(source) as store, self._remote(target) as to_store:
            if (store.protocol_name, urlsplit(source).netloc) != (to_store.protocol_name, urlsplit(target).netloc):
                raise OSError(f"{source} cannot be moved to {target}: another file system")
            if to_store.has_directories:
                to_store.make_directory()
            store.copy(to_store.key, going)

    def listing(self, uri: str) -> list[FileEntry]:
        """Return every file and directory below, sorted by path; [] if there is none."""
        path = local_path(uri)
        if path is not None:
            entries: list[FileEntry] = []
            _walk_local(str(path), "", entries)
            return sorted(entries)
        with self._remote(uri) as store:
            return store.listing()

    def files_of(self, uri: str) -> list[str]:
        """Return the URIs of a file, or of all files below a directory; [] if there is none."""
        path = local_path(uri)
        if path is not None:
            is_file = path.is_file()
        else:
            with self._remote(uri) as store:
                is_file = store.fs.isfile(store.key)
        if is_file:
            return [uri]
        return [f"{uri.rstrip('/')}/{entry.path}" for entry in self.listing(uri) if not entry.is_dir]

    def checksum(self, uri: str) -> str:
        """Return a checksum in hexadecimal that identifies a file's content.

        For an object with an ETag it is the checksum of Hadoop's S3A (``fs.s3a.etag.checksum.enabled``), else its MD5.
        Raises: OSError for HDFS: it has a checksum of its own, which is not available here.
        """
        path = local_path(uri)
        if path is not None:
            with path.open("rb") as file:
                return _md5(file)
        with self._remote(uri) as store:
            if store.protocol_name == "hdfs":
                raise OSError(f"{uri}: files of HDFS cannot be kept for replicas, its checksums are not to be had here")
            etag = str(store.fs.info(store.key).get("ETag") or "").strip('"')
            if etag:
                return etag.encode().hex()
            with store.fs.open(store.key, "rb") as file:
                return _md5(file)

    def put_over(self, source: str, target: str, *, move: bool) -> None:
        """Bring a file, or a copy of it, to a place that may have one of the same content.

        Its time of change is now.
        """
        if move:
            self._require_own(source, inside=True)
        self._require_own(target, inside=True)
        path, to_path = local_path(source), local_path(target)
        if path is not None and to_path is not None:
            _put_over_local(path, to_path, move=move)
            return
        with self._remote(source) as store, self._remote(target) as to:
            near = store.protocol_name in _ACROSS_BUCKETS or urlsplit(source).netloc == urlsplit(target).netloc
            if store.protocol_name != to.protocol_name or not near:
                raise OSError(f"{source} cannot be brought to {target}: another file system")
            to.make_parent()
            store.fs.copy(store.key, to.key)
            if move:
                store.remove(store.key)

    def changed(self, uri: str) -> list[tuple[str, datetime]]:
        """Return the names of the files directly below a directory, each with its last change; [] if there is none.

        [] if there is none.
        """
        path = local_path(uri)
        if path is not None:
            if not path.is_dir():
                return []
            files = [entry for entry in scandir(path) if not entry.is_dir()]
            return [(entry.name, datetime.fromtimestamp(entry.stat().st_mtime, UTC)) for entry in files]
        with self._remote(uri) as store:
            return store.changed()

    def children(self, uri: str) -> list[str]:
        """Return the names directly below a directory, sorted; [] if there is none."""
        path = local_path(uri)
        if path is not None:
            return sorted(child.name for child in path.iterdir()) if path.is_dir() else []
        with self._remote(uri) as store:
            return store.children()

    def _require_own(self, uri: str, *, inside: bool = False) -> None:
        if self.roots is not None:
            self.roots.require(uri, inside=inside)

    @contextmanager
    def _remote(self, uri: str) -> Iterator["_Store"]:
        """Open the store of a URI, for one call."""
        import fsspec  # This imports asyncio: 60 ms that a warehouse on the local disk does not need.

        if "::" in uri:
            raise OSError(f"{uri}: :: cannot be part of a location, it names one file system inside another")
        scheme = urlsplit(uri).scheme.lower()
        name = _FSSPEC_SCHEME.get(scheme, scheme)
        # Otherwise fsspec would answer from earlier listings of the process.
        options = {"use_listings_cache": False} if name in _OBJECT_STORES else {}
        try:
            fs, key = fsspec.core.url_to_fs(f"{name}{uri[len(scheme) :]}", **options, **self.stores.options(uri))
        except (ImportError, ValueError) as error:
            raise OSError(f"{uri}: no file system for {scheme!r} here: {error}") from error
        try:
            yield _Store(name, fs, str(key))
        except OSError:
            raise
        except Exception as error:  # Every store's library has its own errors, S3's also for connections.
            raise OSError(f"{uri}: {type(error).__name__}: {error}") from error


class _Store(NamedTuple):
    """A file system, and the path of a URI in it."""

    protocol_name: str
    fs: Any
    key: str

    @property
    def has_objects(self) -> bool:
        """True if it is an object store, without directories."""
        return self.protocol_name in _OBJECT_STORES

    @property
    def has_directories(self) -> bool:
        """True if a directory can be made. On S3 an empty object stands for it: Spark wants it for its plain tables."""
        return not self.has_objects or self.protocol_name == "s3"

    def make_directory(self) -> None:
        """Make a new directory."""
        if self.protocol_name == "s3":
            bucket, key, _ = self.fs.split_path(self.key)
            self.fs.call_s3("put_object", Bucket=bucket, Key=f"{key.rstrip('/')}/", Body=b"")
        else:
            self.fs.makedirs(self.key, exist_ok=True)

    def make_parent(self) -> None:
        if not self.has_objects:
            self.fs.makedirs(self.key.rsplit("/", 1)[0], exist_ok=True)

    def listing(self) -> list[FileEntry]:
        root = str(self.fs._strip_protocol(self.key)).rstrip("/") + "/"  # noqa: SLF001 - fsspec's own way to compare names
        infos: dict[str, dict[str, Any]] = self.fs.find(self.key, withdirs=True, detail=True)
        return sorted(
            {
                FileEntry(
                    name.removeprefix(root).rstrip("/"),
                    int(info.get("size") or 0),
                    info["type"] == "directory" or name.endswith("/"),
                )
                for name, info in infos.items()
                if name.rstrip("/") + "/" != root
            }
        )

    def children(self) -> list[str]:
        if not self.fs.isdir(self.key):
            return []
        names = (str(child).rstrip("/") for child in self.fs.ls(self.key, detail=False))
        own = str(self.fs._strip_protocol(self.key)).rstrip("/")  # noqa: SLF001
        return sorted({name.rsplit("/", 1)[-1] for name in names if name != own})

    def changed(self) -> list[tuple[str, datetime]]:
        if not self.fs.isdir(self.key):
            return []
        infos = [info for info in self.fs.ls(self.key, detail=True) if info["type"] == "file"]
        return [
            (str(info["name"]).rsplit("/", 1)[-1], next(info[name] for name in _CHANGED if name in info))
            for info in infos
            if not str(info["name"]).endswith("/")
        ]

    def remove(self, key: str) -> None:
        """Remove a path if it exists. s3fs is silent when the store refuses to."""
        if self.fs.exists(key):
            with suppress(FileNotFoundError):
                if self.has_objects and not _PATTERN.isdisjoint(key):
                    self._remove_each([*self.fs.find(key)])
                else:
                    self.fs.rm(key, recursive=True)
            if self.has_objects and self.fs.exists(key):
                raise OSError(f"{key} cannot be removed, or not all of it")

    def copy(self, to: str, going: Callable[[], None]) -> None:
        """Copy a directory, some files at a time."""
        files = [name for name in self._objects() if not name.endswith("/")]
        for begin in range(0, len(files), _AT_A_TIME):
            going()
            some = files[begin : begin + _AT_A_TIME]
            self.fs.copy(some, [to + name.removeprefix(self.key) for name in some], on_error="raise")

    def move(self, to: str) -> None:
        """Move a file or directory. Objects are all copied, then all removed; s3fs's own way stops at a directory."""
        if not self.has_objects:
            self.fs.mv(self.key, to, recursive=True)
            return
        objects = [name for name in self._objects() if not name.endswith("/")]
        if objects:
            self.fs.copy(objects, [to + name.removeprefix(self.key) for name in objects], on_error="raise")
            self._remove_each(objects)
        left = self._objects()
        if not set(left).isdisjoint(objects):
            raise OSError(f"{self.key} is copied to {to}, but cannot be removed, or not all of it")
        if all(name.endswith("/") for name in left):
            self.remove(self.key)

    def _remove_each(self, names: Sequence[str]) -> None:
        """Remove these and no others: what looks like a pattern by itself, the rest in few requests."""
        patterns = [name for name in names if not _PATTERN.isdisjoint(name)]
        for name in patterns:
            if self.protocol_name == "s3" and name.endswith("/"):  # s3fs would cut the slash.
                bucket, _, key = name.partition("/")
                self.fs.call_s3("delete_object", Bucket=bucket, Key=key)
            else:
                self.fs.rm_file(name)
        if len(patterns) < len(names):
            self.fs.rm([name for name in names if _PATTERN.isdisjoint(name)])

    def _objects(self) -> list[str]:
        return [self.key] if self.fs.isfile(self.key) else [*self.fs.find(self.key)]


def _device(path: Path) -> int:
    """Return the file system on which a path is, or will be."""
    return next(device for place in (path, *path.parents) if (device := _stat(place)) is not None)


def _stat(path: Path) -> int | None:
    try:
        return path.stat().st_dev
    except (FileNotFoundError, NotADirectoryError):
        return None


def _delete_local(path: Path, *, recursive: bool) -> None:
    if path.is_dir() and not path.is_symlink():
        if recursive:
            shutil.rmtree(path)
        else:
            path.rmdir()
    else:
        path.unlink(missing_ok=True)


def _md5(file: BinaryIO) -> str:
    digest = hashlib.md5(usedforsecurity=False)
    while some := file.read(2**20):
        digest.update(some)
    return digest.hexdigest()


def _put_over_local(path: Path, to_path: Path, *, move: bool) -> None:
    to_path.parent.mkdir(parents=True, exist_ok=True)
    if move and _device(path) == _device(to_path):
        utime(path)
        path.replace(to_path)
        return
    half = to_path.with_name(f".{uuid4().hex}")
    shutil.copyfile(path, half)
    half.replace(to_path)
    if move:
        path.unlink(missing_ok=True)


def _walk_local(directory: str, prefix: str, list_file_entry: list[FileEntry]) -> None:
    """Add everything below a directory. The kind of an entry is known without a call, its size is not."""
    try:
        entries = list(scandir(directory))
    except (FileNotFoundError, NotADirectoryError):
        return
    for entry in entries:
        path = prefix + entry.name
        if entry.is_dir():
            list_file_entry.append(FileEntry(path, 0, is_dir=True))
            _walk_local(entry.path, path + "/", list_file_entry)
        else:
            with suppress(FileNotFoundError):  # It was removed during the listing.
                list_file_entry.append(FileEntry(path, entry.stat().st_size, is_dir=False))
