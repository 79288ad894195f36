"""Whether the process should be asked at all: a list of parts, each ready or not, with the reason.

Rule: alive says only that the process answers; ready says that a call sent now would be served. A part that has not
reported yet is not ready.
"""

import threading
import time
from collections.abc import Callable
from typing import NamedTuple

_PROBE_LASTS_S = 1.0


class Part(NamedTuple):
    """One part's state; ``reason`` says what it waits for."""

    ready: bool
    reason: str = ""


class Health:
    """The parts of this process."""

    def __init__(self, *names: str) -> None:
        self._parts = dict.fromkeys(names, Part(ready=False, reason="not started yet"))
        self._probes: dict[str, Callable[[], Part]] = {}
        self._probed: dict[str, tuple[float, Part]] = {}
        self._lock = threading.Lock()
        self.stopping = False

    def report(self, name: str, part: Part) -> None:
        """A part tells its own state."""
        self._parts[name] = part

    def probe(self, name: str, look: Callable[[], Part]) -> None:
        """Ask for a part's state whenever somebody wants to know, at most once a second."""
        self._probes[name] = look

    def parts(self) -> dict[str, Part]:
        """Every part's state now."""
        return {name: self._look(name) for name in self._parts}

    def _look(self, name: str) -> Part:
        look = self._probes.get(name)
        if look is None:
            return self._parts[name]
        with self._lock:
            at, part = self._probed.get(name, (float("-inf"), self._parts[name]))
            if time.monotonic() - at > _PROBE_LASTS_S:
                part = look()
                self._probed[name] = time.monotonic(), part
            return part
