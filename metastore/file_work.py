"""The server's work with files: bounded in time and number, so that a host that does not answer stops nobody else.

Rules: a question (is it there, what is in it) and the making of a directory are given up after a while: what comes of
them later hurts nobody. A change is never given up half-way, for its caller goes by whether it was done; it may
take as long as it takes, in a limited number. Who waits here does not count as a call that is being worked on.
Only file systems of listed schemes are opened (ADR 0040).
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
"""Times the time-out that the listing of a whole tree may take."""
REMOVAL = 60
"""The same for what the compaction loops remove: names that never come again, so that it may be done later."""
AT_ONCE = 50
"""Directories that are made by one question."""
_LOOK_S = 0.25
_STILL_S = 1.0
"""With every thread in use: how long none of them may end before the work counts as hung."""
T = TypeVar("T")


def _going() -> None:
    """Give nothing up."""


class NoAnswerFromFilesError(OSError):
    """A file system does not answer, or all threads that may wait for it are waiting."""


@dataclass
class _Host:
    """What is under way at a host."""

    running: int = 0
    moved_at: float = field(default_factory=monotonic)
    """When something last began or ended."""
    silent_until: float = 0.0


class FilePool:
    """The threads for questions, and the count of all that is under way."""

    def __init__(
        self, threads: int, timeout_s: float, aside: Callable[[], AbstractContextManager[Any]] = nullcontext
    ) -> None:
        """``aside``: entered while a caller waits, so that another call can use its thread's place."""
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

        ``going`` is called now and then while the answer is waited for, and raises to give it up.
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
                    if answer.done():  # at the last moment, or it was its own
                        return answer.result()
                going()
        if times == 1:
            self._note_silence(host)
        raise NoAnswerFromFilesError(f"{uri}: {host} did not answer within {self.timeout_s * times:g} s")

    def change(self, uri: str, work: Callable[[], T]) -> T:
        """Do something that must not be left half-way. Raises: NoAnswerFromFilesError, before it is begun."""
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
                self._end(host)  # before the thread waits for its place again

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
        """When something last moved there; None: there is room. Raises: NoAnswerFromFilesError if it is silent."""
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
        """A thread for each question that is under way, kept for the next: file systems are kept by thread."""
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
    """Files of a server. ``schemes``: what may be opened; ``gives_up_removals``: after `REMOVAL` times the time-out."""

    pool: FilePool = field(default_factory=lambda: FilePool(64, 60))
    schemes: Collection[str] = ()
    gives_up_removals: bool = False

    def ask(self, uri: str, question: Callable[[], T], times: float = 1) -> T:
        """See `Files`."""
        return self._ask(uri, question, times)

    def mkdirs(self, uri: str) -> bool:
        """See `Files`; made later, a directory that nobody refers to stays."""
        return self._ask(uri, lambda: Files.mkdirs(self, uri))

    def make_all(self, uris: Sequence[str]) -> Made:
        """See `Files`. Some of a host at a time: to hand a directory to a thread takes longer than to make it."""
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
        """See `Files`."""
        return self._ask(uri, lambda: Files.exists(self, uri))

    def read(self, uri: str) -> bytes:
        """See `Files`."""
        return self._ask(uri, lambda: Files.read(self, uri))

    def open(self, uri: str) -> BinaryIO:
        """See `Files`."""
        return self._ask(uri, lambda: Files.open(self, uri))

    def children(self, uri: str) -> list[str]:
        """See `Files`."""
        return self._ask(uri, lambda: Files.children(self, uri))

    def listing(self, uri: str) -> list[FileEntry]:
        """See `Files`. A large file may take long, so the first question is whether the host answers at all."""
        if not self.exists(uri):
            return []
        return self._ask(uri, lambda: Files.listing(self, uri), LISTING)

    def files_of(self, uri: str) -> list[str]:
        """See `Files`; as for a listing."""
        if not self.exists(uri):
            return []
        return self._ask(uri, lambda: Files.files_of(self, uri), LISTING)

    def checksum(self, uri: str) -> str:
        """See `Files`; a whole file may be read."""
        return self._ask(uri, lambda: Files.checksum(self, uri), REMOVAL)

    def changed(self, uri: str) -> list[tuple[str, datetime]]:
        """See `Files`."""
        return self._ask(uri, lambda: Files.changed(self, uri), LISTING)

    def moves_in_one_step(self, source: str, target: str) -> bool:
        """See `Files`."""
        return self._ask(source, lambda: Files.moves_in_one_step(self, source, target))

    def write(self, uri: str, content: bytes) -> None:
        """See `Files`."""
        self._change(uri, lambda: Files.write(self, uri, content))

    def create(self, uri: str) -> BinaryIO:
        """See `Files`."""
        return self._change(uri, lambda: Files.create(self, uri))

    def delete(self, uri: str, *, recursive: bool = True) -> None:
        """See `Files`."""

        def work() -> None:
            Files.delete(self, uri, recursive=recursive)

        if self.gives_up_removals:
            self._ask(uri, work, REMOVAL)
        else:
            self._change(uri, work)

    def delete_children(self, uri: str) -> None:
        """See `Files`."""
        self._change(uri, lambda: Files.delete_children(self, uri))

    def put_over(self, source: str, target: str, *, move: bool) -> None:
        """See `Files`."""
        self.require_scheme(target)
        self._change(source, lambda: Files.put_over(self, source, target, move=move))

    def rename(self, source: str, target: str) -> None:
        """See `Files`."""
        self.require_scheme(target)
        self._change(source, lambda: Files.rename(self, source, target))

    def copy(self, source: str, target: str, going: Callable[[], None]) -> None:
        """See `Files`."""
        self.require_scheme(target)
        self._change(source, lambda: Files.copy(self, source, target, going))

    def _ask(self, uri: str, question: Callable[[], T], times: float = 1) -> T:
        self.require_scheme(uri)
        return self.pool.ask(uri, question, times)

    def _change(self, uri: str, work: Callable[[], T]) -> T:
        self.require_scheme(uri)
        return self.pool.change(uri, work)

    def require_scheme(self, uri: str) -> None:
        """See `Files`."""
        scheme = scheme_of(uri)
        if scheme not in self.schemes:
            raise OSError(f"{uri}: the scheme {scheme!r} is not one of {SCHEMES} ({', '.join(self.schemes)})")


def _batched(uris: Iterable[str]) -> Iterator[list[str]]:
    left = iter(uris)
    while some := list(islice(left, AT_ONCE)):
        yield some
