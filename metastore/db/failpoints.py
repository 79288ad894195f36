"""Failpoints: named points at which a test makes the process crash, stop or fail, to see what the next process finds.

Rule: off unless the environment variable METASTORE_FAILPOINTS arms a point before the start; then a point acts on its
n-th passage: ``pg.after_commit=kill@3`` kills the process (SIGKILL) right after its third COMMIT. Actions: kill; stop
(SIGSTOP, a frozen process); error (UnavailableError).
"""

import os
import signal
import threading

from metastore.errors import InvalidInputError, UnavailableError

VARIABLE = "METASTORE_FAILPOINTS"
_ACTIONS = ("kill", "stop", "error")


class Failpoints:
    """The armed points, each with the number of passages left until it acts."""

    def __init__(self, text: str) -> None:
        self._lock = threading.Lock()
        self._armed: dict[str, tuple[str, int]] = {}
        for item in filter(None, text.split(",")):
            name, _, rest = item.partition("=")
            action, _, count = rest.partition("@")
            if action not in _ACTIONS or not (count or "1").isdigit():
                raise InvalidInputError(f"{VARIABLE}: {item!r} is not NAME=ACTION[@N] with an action of {_ACTIONS}.")
            self._armed[name] = action, int(count or "1")

    def hit(self, name: str) -> None:
        """Pass the point; do nothing unless it is armed and its turn has come."""
        if name not in self._armed:
            return
        with self._lock:
            action, left = self._armed[name]
            self._armed[name] = action, left - 1
        if left == 1:
            _act(name, action)


def _act(name: str, action: str) -> None:
    if action == "error":
        raise UnavailableError(f"The failpoint {name} was hit.")
    os.kill(os.getpid(), signal.SIGKILL if action == "kill" else signal.SIGSTOP)


hit = Failpoints(os.environ.get(VARIABLE, "")).hit
