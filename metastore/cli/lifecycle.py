"""The life of a process that runs until a signal stops it: signals, lost threads, the ready file.

Rules: SIGTERM, SIGINT and SIGHUP at any time lead to an orderly end with exit code 0. Half a service is useless: when
one of its threads ends with an error, the process ends with exit code 1, and its supervisor starts it again. Objects
made at the start are permanent: the garbage collector does not look at them again, which would stop every thread.
"""

import gc
import json
import os
import signal
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

from metastore.errors import MetastoreError

_COLLECT_AFTER = (700, 10, 10)
"""Python's own; a start has it higher."""


class ThreadLostError(MetastoreError):
    """Error: a thread that the service needs ended with an error."""


class StartedService(Protocol):
    """A service that is started and stopped."""

    def start(self) -> None:
        """Start; leave nothing running when this raises."""

    def stop(self) -> None:
        """Finish calls in progress, and end."""

    def addresses(self) -> Mapping[str, object]:
        """Return the addresses for the ready file."""


def run(service: StartedService, stopping: threading.Event, lost: list[str], ready_file: Path | None) -> None:
    """Start, write the ready file, wait to be told, stop. Raises: ThreadLostError, and what the start raises."""
    service.start()
    try:
        if ready_file:
            write_whole(ready_file, {**service.addresses(), "pid": os.getpid()})
        collect_as_usual()
        stopping.wait()
    finally:
        if ready_file:
            ready_file.unlink(missing_ok=True)
        service.stop()
    if lost:
        raise ThreadLostError(
            f"The thread {lost[0]!r} ended with an error, which is in the log; so the process ended. Start it again."
        )


def collect_as_usual() -> None:
    """Let the garbage collector look at objects made from now on, at Python's usual thresholds."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_COLLECT_AFTER)


def stop_signals() -> threading.Event:
    """Return an event that the signals set. Only the main thread may call this, and only once.

    A handler in Python would run in the main thread alone. A signal that arrives just before that thread begins to wait
    does not interrupt the wait, so the process would never end. The interpreter writes to a pipe at once, and a thread
    reads it.
    """
    stopping = threading.Event()
    told, tell = os.pipe()
    os.set_blocking(tell, False)
    signal.set_wakeup_fd(tell, warn_on_full_buffer=False)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: None)

    def wait() -> None:
        os.read(told, 1)
        stopping.set()

    threading.Thread(target=wait, name="signals", daemon=True).start()
    return stopping


def end_with_input(stopping: threading.Event) -> None:
    """Stop when the process that started us is gone: its end of our input is closed then."""

    def wait() -> None:
        # sys.stdin is not used: its lock, held by a waiting thread, is a fatal error at the interpreter's end.
        with suppress(OSError):
            while os.read(0, 1024):
                pass
        stopping.set()

    threading.Thread(target=wait, name="parent-watcher", daemon=True).start()


def lost_threads(stopping: threading.Event, log: Any) -> list[str]:
    """Return the list of threads that end with an error from now on; the first sets ``stopping``."""
    lost: list[str] = []

    def note(ended: threading.ExceptHookArgs) -> None:
        name = ended.thread.name if ended.thread else "unknown"
        if ended.exc_type is not SystemExit:
            log.error("thread_lost", thread=name, exc_info=ended.exc_value)
            lost.append(name)
            stopping.set()

    threading.excepthook = note
    return lost


def write_whole(path: Path, content: Mapping[str, object]) -> None:
    """Write the whole file or nothing, for our own user only: the database's URL has its password."""
    fresh = path.with_name(f"{path.name}.{os.getpid()}")
    fresh.unlink(missing_ok=True)
    # The file is made anew, so that the target of a link with that name stays unchanged.
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as written:
        written.write(json.dumps(content) + "\n")
    fresh.replace(path)
