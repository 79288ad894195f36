"""Ownership of changes of directories: it is renewed while their files are worked on, however long that takes."""

from collections.abc import Sequence
from threading import Event, Thread
from time import perf_counter
from typing import Self

from metastore.catalog.store import directory_changes as store
from metastore.catalog.store.directory_changes import LEASE, Change
from metastore.db.engine import Database
from metastore.errors import MetastoreError, UnavailableError

_PAUSE_S = LEASE.total_seconds() / 4


class Ownership:
    """A thread that renews the rows of changes.

    ``require`` is called before each step that another process could repeat.
    """

    def __init__(self, db: Database, changes: Sequence[Change], owner: str) -> None:
        self._db, self._changes, self._owner = db, changes, owner
        self._ended = Event()
        self._renewed_at = perf_counter()
        self._thread = Thread(target=self._renew, name="directory-changes", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()

    def require(self) -> None:
        """Raise UnavailableError if another process may have taken the changes.

        It may, for instance, while this process was stopped.
        """
        if perf_counter() - self._renewed_at > 3 * _PAUSE_S:
            raise UnavailableError(f"Moving {self._changes[0].source} was interrupted, nothing was changed, try again")

    def _renew(self) -> None:
        while not self._ended.wait(_PAUSE_S):
            asked_at = perf_counter()
            try:
                with self._db.begin() as pg:
                    if not store.update_renewed(pg, self._changes, self._owner):
                        return
            except MetastoreError:  # The renewal failed: it is tried again, and in the end ownership is lost.
                continue
            self._renewed_at = asked_at
