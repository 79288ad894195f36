"""Renames that move a directory: announced, moved and committed so that no crash separates data from its table.

1. The intention is committed (``directory_moves``). 2. In one PostgreSQL transaction: the intention is locked, the
catalog changed, the directory moved, the intention deleted. A crash before that COMMIT leaves the old catalog and an
intention that nobody holds; ``settle_moves`` then brings the files back to where the catalog says they are.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from metastore.catalog.store import moves as store
from metastore.catalog.store.moves import Move
from metastore.db.engine import Database, PgTx
from metastore.errors import InvalidOperationError, OutcomeUnknownError, UnavailableError
from metastore.files import Files
from metastore.roots import refusal
from metastore.telemetry.logs import get_logger

_log = get_logger(__name__)


@dataclass(frozen=True)
class DirectoryMoves:
    """Moves of one process; any process may settle what another left."""

    db: Database
    files: Files

    def announce(self, pg: PgTx, table_id: int, source: str, target: str, partition: str = "") -> Move:
        """Record the intention; the caller commits it before anything else. Raises: InvalidOperationError."""
        for place in (source, target):
            if self.files.roots is not None and not self.files.roots.covers(place, inside=True):
                raise InvalidOperationError(f"{source} cannot be moved to {target}: {refusal(place)}")
        self._require_free(target)
        return store.insert_move(pg, table_id, source, target, partition)

    @contextmanager
    def moving(self, move: Move) -> Iterator[PgTx]:
        """A PostgreSQL transaction for the catalog's side of the move; the directory moves just before its COMMIT.

        Serialises on: the intention's row, and whatever the block locks. Raises: InvalidOperationError if the directory
        cannot be moved, UnavailableError if somebody settled the move meanwhile.
        """
        begun = False
        try:
            with self.db.begin() as pg:
                _require_unsettled(pg, move)
                yield pg
                self._require_free(move.target)  # made since the announcement: not ours to touch
                begun = True
                self._move(move)
                store.delete_move(pg, move)
        except OutcomeUnknownError:
            raise  # whether it was committed is found out by settle_moves
        except BaseException:
            with self.db.begin() as pg:
                if store.lock_move(pg, move):
                    self._settle(pg, move, moved=begun)
            raise

    def settle_moves(self) -> int:
        """Undo moves whose process died before it could commit; how many were undone.

        Serialises on: each intention's row; those in progress are skipped.
        """
        with self.db.begin() as pg:
            abandoned = store.claim_abandoned_moves(pg)
            settled = [move for move in abandoned if self._settled(pg, move)]
        return len(settled)

    def _settled(self, pg: PgTx, move: Move) -> bool:
        try:
            self._settle(pg, move)
        except OSError as error:  # the file system is away: the next one to try finds the move again
            _log.warning("directory_move_not_undone", source=move.source, target=move.target, reason=str(error))
            return False
        return True

    def _require_free(self, target: str) -> None:
        if self.files.exists(target):
            raise InvalidOperationError(f"New location for this table {target} already exists")

    def _move(self, move: Move) -> None:
        if not self.files.exists(move.source):
            return  # Hive: without the old directory only the catalog changes
        try:
            self.files.rename(move.source, move.target)
        except OSError as error:
            raise InvalidOperationError(f"Unable to move {move.source} to {move.target}: {error}") from error

    def _settle(self, pg: PgTx, move: Move, *, moved: bool = True) -> None:
        """The catalog still says ``source``: whatever is at ``target`` goes back, file by file if both are there."""
        if moved and self.files.exists(move.target):
            _log.warning("directory_move_undone", source=move.source, target=move.target)
            if self.files.exists(move.source):
                for entry in self.files.listing(move.target):
                    to = f"{move.source}/{entry.path}"
                    if not entry.is_dir and not self.files.exists(to):
                        self.files.rename(f"{move.target}/{entry.path}", to)
                self.files.delete(move.target)
            else:
                self.files.rename(move.target, move.source)
        store.delete_move(pg, move)


def _require_unsettled(pg: PgTx, move: Move) -> None:
    if not store.lock_move(pg, move):
        raise UnavailableError(f"Moving {move.source} took too long to begin, nothing was changed, try again")
