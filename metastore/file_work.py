"""File operations of the server: bounded in time and number, so that a silent host stops no other work.

Rules: questions (does it exist, what does it contain) and the creation of a directory are given up after a while: a
late result does no harm. A change is never given up half-way, because its caller relies on its outcome; it may take any
time, in a limited number. A call that waits here does not count as a call in progress. Only file systems of listed
schemes are opened (ADR 0040).
"""

import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from itertools import groupby, islice
from queue import SimpleQueue
from time import monotonic
from typing import Any, BinaryIO, TypeVar

from metastore.files import FileEntry, Files, Made
from metastore.roots import host_of, scheme_of

SCHEMES = "metastore.warehouse.schemes"
LISTING = 10
"""The factor of the time-out for the listing of a whole tree."""
REMOVAL = 60
"""The factor of the time-out for removals by the compaction loops: the names never come again, so they may be late."""
AT_ONCE = 50
"""Directories that are made by one question."""
_LOOK_S = 0.25
_STILL_S = 1.0
"""The time without any finished thread, while all are in use, after which the work counts as hung."""
T = TypeVar("T")


def _going() -> None:
    """Continue always."""


class NoAnswerFromFilesError(OSError):
    """Error: a file system does not answer, or all threads for it are waiting."""


@dataclass
class _Host:
    """The work in progress at a host."""

    running: int = 0
    moved_at: float = field(default_factory=monotonic)
    """The time when a piece of work last began or ended."""
    silent_until: float = 0.0


class FilePool:
    """The threads for questions, and the count of all work in progress."""

    def __init__(
        self, threads: int, timeout_s: float, aside: Callable[[], AbstractContextManager[Any]] = nullcontext
    ) -> None:
        """Prepare a pool; ``aside``: entered while a caller waits, so that another call can use its thread's place."""
        self.timeout_s = timeout_s
        self._most, self._most_of_host, self._aside = threads, max(1, threads // 2), aside
        self._changed = threading.Condition()
        self._hosts: dict[str, _Host] = {}
        self._running = self._threads = 0
        self._moved_at = monotonic()
        self._tasks: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._local = threading.local()

    def ask(self, uri: str, question: Callable[[], T], times: float = 1, going: Callable[[], None] = _going) -> T:
        """Return the answer, within ``times`` the time-out. Raises: NoAnswerFromFilesError.

        ``going`` is called now and then during the wait, and raises to give it up.
        """
        if self._is_inside():
            return question()
        host = host_of(uri)
        self._begin(uri, host)
        answer: Future[T] = Future()

        def work() -> None:
            try:
                result = question()
            except BaseException as error:  # noqa: BLE001 - it is the asker's
                self._end(host)
                answer.set_exception(error)
            else:
                self._end(host)
                answer.set_result(result)

        self._put(work)
        ends_at = monotonic() + self.timeout_s * times
        with self._aside():
            while (left := ends_at - monotonic()) > 0:
                try:
                    return answer.result(min(left, _LOOK_S))
                except TimeoutError:
                    if answer.done():  # The answer came at the last moment, or the work itself raised TimeoutError.
                        return answer.result()
                going()
        if times == 1:
            self._note_silence(host)
        raise NoAnswerFromFilesError(f"{uri}: {host} did not answer within {self.timeout_s * times:g} s")

    def change(self, uri: str, work: Callable[[], T]) -> T:
        """Run a change that must not be left half-way. Raises: NoAnswerFromFilesError, before it is begun."""
        if self._is_inside():
            return work()
        host = host_of(uri)
        self._begin(uri, host)
        with self._aside():
            self._local.inside = True
            try:
                return work()
            finally:
                self._local.inside = False
                self._end(host)  # The host must be free before the thread waits for its place.

    def _is_inside(self) -> bool:
        return getattr(self._local, "inside", False)

    def _begin(self, uri: str, host: str) -> None:
        with self._changed:
            while (waits_since := self._full_since(uri, host)) is not None:
                left = waits_since + _STILL_S - monotonic()
                if left <= 0:
                    busiest = max(self._hosts, key=lambda name: self._hosts[name].running)
                    raise NoAnswerFromFilesError(
                        f"{uri}: too many calls wait for files, most of them for {busiest}, which does not answer; "
                        "nothing was done, try again later"
                    )
                self._changed.wait(left)
            at = self._hosts.setdefault(host, _Host())
            at.running += 1
            self._running += 1
            at.moved_at = self._moved_at = monotonic()

    def _full_since(self, uri: str, host: str) -> float | None:
        """Return the last progress of a full host; None: there is room.

        Raises: NoAnswerFromFilesError if it is silent.
        """
        at = self._hosts.get(host, _Host())
        if at.silent_until > monotonic():
            raise NoAnswerFromFilesError(f"{uri}: {host} does not answer; nothing was done, try again later")
        if at.running >= self._most_of_host:
            return at.moved_at
        return self._moved_at if self._running >= self._most else None

    def _end(self, host: str) -> None:
        with self._changed:
            at = self._hosts[host]
            at.running -= 1
            self._running -= 1
            at.moved_at = self._moved_at = monotonic()
            at.silent_until = 0.0
            if not at.running:
                del self._hosts[host]
            self._changed.notify_all()

    def _note_silence(self, host: str) -> None:
        with self._changed:
            at = self._hosts.get(host)
            if at is not None and at.moved_at + self.timeout_s <= monotonic():
                at.silent_until = monotonic() + self.timeout_s

    def _put(self, work: Callable[[], None]) -> None:
        """Run the work on a thread, kept for the next question: file systems are kept by thread."""
        with self._changed:
            if self._threads < self._running:
                self._threads += 1
                threading.Thread(target=self._work, name=f"files-{self._threads}", daemon=True).start()
        self._tasks.put(work)

    def _work(self) -> None:
        self._local.inside = True
        while True:
            self._tasks.get()()


@dataclass(frozen=True)
class BoundedFiles(Files):
    """The files of a server. ``schemes``: those allowed; ``gives_up_removals``: after `REMOVAL` times the time-out."""

    pool: FilePool = field(default_factory=lambda: FilePool(64, 60))
    schemes: Collection[str] = ()
    gives_up_removals: bool = False

    def ask(self, uri: str, question: Callable[[], T], times: float = 1) -> T:
        """Ask as `Files` does."""
        return self._ask(uri, question, times)

    def mkdirs(self, uri: str) -> bool:
        """Make a directory as `Files` does; a late one, which has no owner, stays."""
        return self._ask(uri, lambda: Files.mkdirs(self, uri))

    def make_all(self, uris: Sequence[str]) -> Made:
        """Make directories as `Files` does, some of a host at a time.

        A hand-over to a thread takes longer than the making.
        """
        new: list[str] = []
        for _, of_host in groupby(uris, host_of):
            for some in _batched(of_host):
                try:
                    made = self._ask(some[0], partial(Files.make_all, self, some))
                except OSError as error:
                    return Made(new, some[0], error)
                new += made.new
                if made.error is not None:
                    return Made(new, made.failed, made.error)
        return Made(new)

    def exists(self, uri: str) -> bool:
        """Return the answer of `Files`."""
        return self._ask(uri, lambda: Files.exists(self, uri))

    def read(self, uri: str) -> bytes:
        """Read as `Files` does."""
        return self._ask(uri, lambda: Files.read(self, uri))

    def open(self, uri: str) -> BinaryIO:
        """Open as `Files` does."""
        return self._ask(uri, lambda: Files.open(self, uri))

    def children(self, uri: str) -> list[str]:
        """List as `Files` does."""
        return self._ask(uri, lambda: Files.children(self, uri))

    def listing(self, uri: str) -> list[FileEntry]:
        """List as `Files` does.

        A large directory may take long, so the first question is if the host answers at all.
        """
        if not self.exists(uri):
            return []
        return self._ask(uri, lambda: Files.listing(self, uri), LISTING)

    def files_of(self, uri: str) -> list[str]:
        """List as `Files` does, with the time of a listing."""
        if not self.exists(uri):
            return []
        return self._ask(uri, lambda: Files.files_of(self, uri), LISTING)

    def checksum(self, uri: str) -> str:
        """Return the answer of `Files`; a whole file may be read."""
        return self._ask(uri, lambda: Files.checksum(self, uri), REMOVAL)

    def changed(self, uri: str) -> list[tuple[str, datetime]]:
        """Return the answer of `Files`."""
        return self._ask(uri, lambda: Files.changed(self, uri), LISTING)

    def moves_in_one_step(self, source: str, target: str) -> bool:
        """Return the answer of `Files`."""
        return self._ask(source, lambda: Files.moves_in_one_step(self, source, target))

    def write(self, uri: str, content: bytes) -> None:
        """Write as `Files` does."""
        self._change(uri, lambda: Files.write(self, uri, content))

    def create(self, uri: str) -> BinaryIO:
        """Create as `Files` does."""
        return self._change(uri, lambda: Files.create(self, uri))

    def delete(self, uri: str, *, recursive: bool = True) -> None:
        """Delete as `Files` does."""

        def work() -> None:
            Files.delete(self, uri, recursive=recursive)

        if self.gives_up_removals:
            self._ask(uri, work, REMOVAL)
        else:
            self._change(uri, work)

    def delete_children(self, uri: str) -> None:
        """Delete as `Files` does."""
        self._change(uri, lambda: Files.delete_children(self, uri))

    def put_over(self, source: str, target: str, *, move: bool) -> None:
        """Put as `Files` does."""
        self.require_scheme(target)
        self._change(source, lambda: Files.put_over(self, source, target, move=move))

    def rename(self, source: str, target: str) -> None:
        """Rename as `Files` does."""
        self.require_scheme(target)
        self._change(source, lambda: Files.rename(self, source, target))

    def copy(self, source: str, target: str, going: Callable[[], None]) -> None:
        """Copy as `Files` does."""
        self.require_scheme(target)
        self._change(source, lambda: Files.copy(self, source, target, going))

    def _ask(self, uri: str, question: Callable[[], T], times: float = 1) -> T:
        self.require_scheme(uri)
        return self.pool.ask(uri, question, times)

    def _change(self, uri: str, work: Callable[[], T]) -> T:
        self.require_scheme(uri)
        return self.pool.change(uri, work)

    def require_scheme(self, uri: str) -> None:
        """Raise as `Files` does."""
        scheme = scheme_of(uri)
        if scheme not in self.schemes:
            raise OSError(f"{uri}: the scheme {scheme!r} is not one of {SCHEMES} ({', '.join(self.schemes)})")


def _batched(uris: Iterable[str]) -> Iterator[list[str]]:
    left = iter(uris)
    while some := list(islice(left, AT_ONCE)):
        yield some
