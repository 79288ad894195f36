"""A command that compacts, in a process group of its own: started under a guard, waited for, ended with all it started.

Rule: the command ends with us (``job_guard``). Whoever has started it ends it, and is told if that was not possible.
"""

import os
import re
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Event
from time import perf_counter

from metastore.client import tls

GUARD_MODULE = "metastore.loops.job_guard"
_POLL_S = 1.0
_KILL_AFTER_S = 10.0
_GONE_AFTER_S = 60.0
_PASSED_ON = re.compile(
    r"PATH|HOME|USER|LOGNAME|SHELL|LANG|LC_\w+|TZ|TMPDIR|HOSTNAME|VIRTUAL_ENV|PYTHON\w*|PYSPARK_\w+|"
    r"(JAVA|JDK|LD)_\w+|"
    r"(SPARK|HADOOP|YARN|HDFS|HIVE_CONF|KRB5|AWS|GOOGLE|GCS|CLOUDSDK|AZURE|KUBERNETES|SSL_CERT|XDG)(_\w+)?|"
    r"(HTTPS?|NO|FTP|ALL)_PROXY|(MALLOC|OMP)_\w+",
    re.IGNORECASE,
)
"""What a job needs of our environment: programs, Spark, Hadoop, and the object store's credentials."""
_OF_CLIENTS = frozenset(map(tls.variable, tls.KEYS))
"""By which the job shows the metastore who it is."""


def passed_on(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of ours that a job gets: none with a setting of ours, such as the database's password."""
    return {name: text for name, text in environment.items() if _PASSED_ON.fullmatch(name) or name in _OF_CLIENTS}


class JobLivesError(RuntimeError):
    """The job was killed and is still there: it may write yet."""


class JobProcess:
    """A running command. Its errors, and unless it answers what it prints, go to a log."""

    def __init__(
        self, command: Sequence[str], log: Path, environment: Mapping[str, str], *, answers: bool = False
    ) -> None:
        """``environment``: variables beside those of ours that are passed on (``passed_on``).

        ``answers``: what the command prints is read by ``answer``.
        """
        with log.open("wb") as errors:
            self._child = subprocess.Popen(  # noqa: S603 - our own command, no shell
                [sys.executable, "-m", GUARD_MODULE, *command],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE if answers else errors,
                stderr=errors,
                start_new_session=True,
                bufsize=0,
                env={**passed_on(os.environ), **environment},
            )

    @property
    def lives(self) -> bool:
        """Whether it has not ended."""
        return self._child.poll() is None

    def wait(self, pulse: Callable[[], None]) -> int:
        """Wait for its end: its exit status. ``pulse`` is called every second; what it raises is raised."""
        while True:
            try:
                return self._child.wait(timeout=_POLL_S)
            except subprocess.TimeoutExpired:
                pulse()

    def ask(self, line: str) -> None:
        """Give it a line, which is no longer than a pipe takes at once. One that has ended answers nothing."""
        if self._child.stdin is not None:
            with suppress(BrokenPipeError):
                self._child.stdin.write(f"{line}\n".encode())

    def answer(self, pulse: Callable[[], None]) -> str:
        """Return the next line that it prints, or "" when it has ended. ``pulse``: as for ``wait``."""
        source, said = self._child.stdout, b""
        if source is None:
            return ""
        ears = select.poll()  # descriptors may have any number
        ears.register(source, select.POLLIN)
        while not said.endswith(b"\n"):
            if ears.poll(1000 * _POLL_S):
                if not (more := os.read(source.fileno(), 1000)):
                    return ""
                said += more
            elif self.lives:
                pulse()
            else:  # its guard was killed, without which it may not go on
                return ""
        return said.decode().strip()

    def end(self) -> int:
        """End it with everything that it has started (the JVM is a grandchild): its status. Raises: JobLivesError."""
        child = self._child
        for number, patience in ((signal.SIGTERM, _KILL_AFTER_S), (signal.SIGKILL, None)):
            try:
                os.killpg(child.pid, number)
            except ProcessLookupError:
                break
            try:
                child.wait(timeout=patience)
            except subprocess.TimeoutExpired:
                continue
            if number == signal.SIGTERM and _group_lives(child.pid, 1.0):
                continue
            break
        code = child.wait()
        for pipe in (child.stdin, child.stdout):
            if pipe is not None:
                pipe.close()
        if _group_lives(child.pid, _GONE_AFTER_S):
            raise JobLivesError(f"The compaction job (process group {child.pid}) was killed and is still there")
        return code


def _group_lives(group: int, seconds: float) -> bool:
    """Whether a grandchild is still there after its grace: exits take a moment, longer while a disk is waited for."""
    ends_at, pause = perf_counter() + seconds, Event()
    while perf_counter() < ends_at:
        _bury(group)
        try:
            os.killpg(group, 0)
        except (ProcessLookupError, PermissionError):
            return False
        pause.wait(0.01)
    return True


def _bury(group: int) -> None:
    """A container's first process inherits what its children leave, and whom nobody waits for counts as there."""
    with suppress(ChildProcessError):
        while os.waitpid(-group, os.WNOHANG)[0]:
            pass
