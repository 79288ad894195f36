"""Processes of compaction commands, each in a group of its own: started under a guard, ended with all children.

Rule: the command ends with us (``job_guard``). Its starter ends it, and gets an error if that is not possible.
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
"""The variables of our environment that a job needs: programs, Spark, Hadoop, and the object store's credentials."""
_OF_CLIENTS = frozenset(map(tls.variable, tls.KEYS))
"""The variables by which the job proves its identity to the metastore."""


def passed_on(environment: Mapping[str, str]) -> dict[str, str]:
    """Return our variables that a job gets: none with a setting of ours, such as the database's password."""
    return {name: text for name, text in environment.items() if _PASSED_ON.fullmatch(name) or name in _OF_CLIENTS}


class JobLivesError(RuntimeError):
    """Error: the job was killed and is still there, so it may write yet."""


class JobProcess:
    """A running command. Its errors go to a log, and so does its output unless it answers."""

    def __init__(
        self, command: Sequence[str], log: Path, environment: Mapping[str, str], *, answers: bool = False
    ) -> None:
        """Start the command.

        ``environment``: variables beside those of ours that are passed on (``passed_on``). ``answers``: ``answer``
        reads the output of the command.
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
        """True if the command has not ended."""
        return self._child.poll() is None

    def wait(self, pulse: Callable[[], None]) -> int:
        """Wait for the end; return the exit status. ``pulse`` is called every second; its errors are raised."""
        while True:
            try:
                return self._child.wait(timeout=_POLL_S)
            except subprocess.TimeoutExpired:
                pulse()

    def ask(self, line: str) -> None:
        """Send the command a line, no longer than a pipe takes at once. A command that has ended never answers."""
        if self._child.stdin is not None:
            with suppress(BrokenPipeError):
                self._child.stdin.write(f"{line}\n".encode())

    def answer(self, pulse: Callable[[], None]) -> str:
        """Return the next line of output, or "" when the command has ended. ``pulse``: as for ``wait``."""
        source, said = self._child.stdout, b""
        if source is None:
            return ""
        ears = select.poll()  # poll() works with any number of descriptors.
        ears.register(source, select.POLLIN)
        while not said.endswith(b"\n"):
            if ears.poll(1000 * _POLL_S):
                if not (more := os.read(source.fileno(), 1000)):
                    return ""
                said += more
            elif self.lives:
                pulse()
            else:  # The guard was killed, and the command may not run without one.
                return ""
        return said.decode().strip()

    def end(self) -> int:
        """End the command with all its processes (the JVM is a grandchild); return its status.

        Raises: JobLivesError.
        """
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
    """Return True if a grandchild still exists after its grace.

    Exits take a moment, longer while they wait for a disk.
    """
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
    """Reap orphans: a container's first process inherits them, and an unreaped process counts as alive."""
    with suppress(ChildProcessError):
        while os.waitpid(-group, os.WNOHANG)[0]:
            pass
