"""Readiness of the process: a list of parts, each ready or not, with the reason.

Rule: alive says only that the process answers; ready says that a call sent now would be served. A part that has not
reported yet is not ready. No answer takes long: each probe runs on a thread of its own, at most once at a time, and a
probe that does not return makes its part not ready.
"""

import threading
import time
from collections.abc import Callable
from typing import NamedTuple

from metastore.redaction import redacted

_PROBE_LASTS_S = 1.0
_PATIENCE_S = 0.5
"""The time for which a question waits for its probe: less than the second that Kubernetes waits for the answer."""
_SILENCE_S = 5.0
"""The time for which the last answer counts while a probe has not come back."""


class HealthPart(NamedTuple):
    """A part's state; ``reason`` says what it waits for."""

    ready: bool
    reason: str = ""


class _Probe:
    """A probe of a part's state, run when a caller asks."""

    def __init__(self, look: Callable[[], HealthPart], part: HealthPart) -> None:
        self._look, self._part = look, part
        self._at = self._began = float("-inf")
        self._done = threading.Event()
        self._done.set()
        self._lock = threading.Lock()

    def part(self) -> HealthPart:
        """Return the part's state as of a moment ago."""
        with self._lock:
            if self._done.is_set() and time.monotonic() - self._at > _PROBE_LASTS_S:
                self._done.clear()
                self._began = time.monotonic()
                threading.Thread(target=self._run, name="probe", daemon=True).start()
        if not self._done.wait(_PATIENCE_S) and (silent := time.monotonic() - self._began) > _SILENCE_S:
            return HealthPart(ready=False, reason=f"has not answered for {silent:.0f} s")
        return self._part

    def _run(self) -> None:
        try:
            self._part = self._look()
        except Exception as error:  # noqa: BLE001 - whatever a probe meets, the next is to run
            self._part = HealthPart(ready=False, reason=redacted(str(error)) or type(error).__name__)
        self._at = time.monotonic()
        self._done.set()


class Health:
    """The parts of this process."""

    def __init__(self, *names: str) -> None:
        self._parts = dict.fromkeys(names, HealthPart(ready=False, reason="not started yet"))
        self._probes: dict[str, _Probe] = {}
        self.stopping = False

    def report(self, name: str, part: HealthPart) -> None:
        """Record a part's own report of its state."""
        self._parts[name] = part

    def probe(self, name: str, look: Callable[[], HealthPart]) -> None:
        """Ask for a part's state whenever somebody wants to know, at most once a second."""
        self._probes[name] = _Probe(look, self._parts[name])

    def parts(self) -> dict[str, HealthPart]:
        """Every part's state now."""
        return {name: self._probes[name].part() if name in self._probes else part for name, part in self._parts.items()}
