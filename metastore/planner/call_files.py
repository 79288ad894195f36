"""The files of one call: read where the metastore's settings allow it, in bounded time, until the caller leaves.

Rule: a location comes from a client. No file is opened or listed outside of the roots and of the places in
``metastore.warehouse.readable``, links resolved; no file is ever changed.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

from metastore.errors import AccessDeniedError
from metastore.file_work import BoundedFiles
from metastore.planner.work_slots import require_caller
from metastore.roots import KEY, READABLE, OutsideError, Roots, local_path

T = TypeVar("T")
_NOWHERE = Roots(())


@dataclass(frozen=True)
class CallFiles(BoundedFiles):
    """The files of a call. ``readable``: directories that may be read. ``gone``: set when the caller leaves."""

    roots: Roots | None = _NOWHERE
    readable: Roots = _NOWHERE
    gone: threading.Event = field(default_factory=threading.Event)
    _known: set[str] = field(default_factory=set)
    """The directories that lie inside, with links resolved."""

    def _ask(self, uri: str, question: Callable[[], T], times: float = 1) -> T:
        require_caller(self.gone)
        self.require_scheme(uri)

        def within() -> T:
            self._require_readable(uri)
            return question()

        return self.pool.ask(uri, within, times, partial(require_caller, self.gone))

    def _require_readable(self, uri: str) -> None:
        """Raise AccessDeniedError for a place outside. A directory's links are resolved once."""
        directory = uri.rstrip("/").rpartition("/")[0]
        path = local_path(uri)
        if directory in self._known and not (path is not None and path.is_symlink()):
            return
        try:
            self.readable.require(uri)
            if self.readable.covers(directory):
                self.readable.require(directory)
                self._known.add(directory)
        except OutsideError:
            raise AccessDeniedError(
                f"{uri} does not lie where this service reads: in the warehouse, or below a directory that {KEY} or "
                f"{READABLE} of the metastore lists."
            ) from None
