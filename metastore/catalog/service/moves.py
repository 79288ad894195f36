"""Moves and removals of directories by changes of the catalog: announced, then worked on while no lock is held.

Rule: no file is touched in a PostgreSQL transaction. A move is announced (one transaction), its directory brought to
the new place, the catalog changed (a second transaction, fenced by the announcement), and what was only copied is
removed from the old place: that stays whole until the catalog names the new place, and the single step of a disk's
rename is taken back. A removal is announced by the transaction that drops the object. What a dead process leaves,
``settle_moves`` ends; until then no other object can use the places, so no other object's files are moved or removed
(ADR 0040).
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Thread
from time import monotonic
from uuid import uuid4

from metastore.catalog.rules.locations import outermost
from metastore.catalog.rules.trash import is_in_trash, place_in_trash
from metastore.catalog.service import change_management
from metastore.catalog.service.directories import Directories
from metastore.catalog.service.ownership import Ownership
from metastore.catalog.store import directory_changes as store
from metastore.catalog.store.directory_changes import Change, Phase
from metastore.db import failpoints
from metastore.db.engine import Database, PgTx
from metastore.errors import InvalidOperationError, MetaError, MetastoreError, OutcomeUnknownError, UnavailableError
from metastore.files import Files
from metastore.places.rules import Taker, refused
from metastore.places.store import select_users
from metastore.roots import host_of, refusal
from metastore.telemetry.logs import get_logger

_log = get_logger(__name__)


@dataclass(frozen=True)
class DirectoryMoves:
    """Moves and removals of one process; any process settles what another left."""

    db: Database
    files: Files
    owner: str = field(default_factory=lambda: uuid4().hex)
    patience_s: float = 60
    """The time for which a round of ``settle_moves`` waits for its pending work."""
    settling: set[str] = field(default_factory=set)
    """The hosts at which this process is still settling something."""
    has_trash: bool = False
    """True if dropped data goes to the trash of whoever drops it."""

    # These checks run in PostgreSQL transactions of other calls.

    def require_free(self, pg: PgTx, places: Iterable[str | None]) -> None:
        """Keep places free until COMMIT for an object that is put there.

        Raises: MetaError for a scheme of which nothing is opened, UnavailableError.
        """
        wanted = [place for place in places if place]
        try:
            for place in wanted:
                self.files.require_scheme(place)
        except OSError as error:
            raise MetaError(f"Nothing can be stored there: {error}") from error
        taken = store.select_taken(pg, wanted) if wanted else None
        if taken is not None:
            raise UnavailableError(f"{taken} is being moved, emptied or removed, nothing was changed, try again")

    @staticmethod
    def require_available(pg: PgTx, places: Iterable[str | None], taker: Taker) -> None:
        """Refuse places that an object cannot be given, because other objects have them. Raises: MetaError."""
        wanted = [place for place in places if place]
        reason = refused(taker, select_users(pg, wanted, taker.table_id))
        if reason is not None:
            raise MetaError(reason)

    @staticmethod
    def require_sole(
        pg: PgTx, places: Iterable[str | None], action: str, own: int, own_partitions: Sequence[str] | None
    ) -> None:
        """Refuse to empty or move directories that other objects have, too, or that hold or lie in places of others.

        ``action``: what cannot be done; ``own`` and ``own_partitions``: as for `select_users`. No object is given such
        a place until COMMIT. Raises: MetaError.
        """
        wanted = [place for place in places if place]
        if not wanted:
            return
        store.lock_creators(pg)
        for user in select_users(pg, wanted, own, own_partitions):
            raise MetaError(f"{action}: {user.place} is used by {user.name} ({user.location}) as well")

    @staticmethod
    def require_still(pg: PgTx, places: Iterable[str | None]) -> None:
        """Raise UnavailableError if a place that is dropped or emptied is being moved."""
        wanted = [place for place in places if place]
        moving = store.select_moving(pg, wanted) if wanted else None
        if moving is not None:
            raise UnavailableError(f"{moving} is being renamed, nothing was changed, try again")

    # Moves

    def announce(
        self,
        pg: PgTx,
        table_id: int,
        source: str,
        target: str,
        *,
        partitions: Sequence[str] | None = None,
        kept: bool = False,
    ) -> Change:
        """Record the intention to move a directory; the caller commits it before any other step.

        ``partitions``: partitions of the table that move along, None: all; ``kept``: replicas may need the files.
        Raises: InvalidOperationError, MetaError, UnavailableError.
        """
        for place in (source, target):
            if self.files.roots is not None and not self.files.roots.covers(place, inside=True):
                raise InvalidOperationError(f"{source} cannot be moved to {target}: {refusal(place)}")
        self.require_sole(pg, [source], f"{source} cannot be moved to {target}", table_id, partitions)
        self.require_free(pg, (source, target))
        return store.insert_move(pg, self.owner, table_id, source, target, kept=kept)

    @contextmanager
    def moving(self, move: Change) -> Iterator[PgTx]:
        """Open a PostgreSQL transaction for the catalog's side of an announced move, begun when the files are in place.

        Serialises on: the announcement's row, and what the block locks.
        Raises: InvalidOperationError if the directory cannot be moved, UnavailableError if another process settled the
        move meanwhile.
        """
        with Ownership(self.db, [move], self.owner) as ours:
            brought = copied = False
            try:
                self._require_no(move.target or "")
                if self._exists(move.source):  # As in Hive, only the catalog changes if the old directory is absent.
                    self._go_on(move, Phase.ANNOUNCED, Phase.BEGUN)
                    copied = not self._in_one_step(move)
                    brought = True
                    self._bring(move, ours, copied=copied)
                    failpoints.hit("moves.after_bring")
                with self.db.begin() as pg:
                    self._require(pg, move, Phase.BEGUN if brought else Phase.ANNOUNCED, Phase.DONE)
                    yield pg
                    if not copied:
                        store.delete_changes(pg, [move], self.owner)
            except OutcomeUnknownError:
                raise  # settle_moves finds out whether the change was committed.
            except BaseException:
                self._take_back(move, brought=brought)
                raise
            if copied:
                self._remove([move])

    # Removals

    def announce_removals(
        self, pg: PgTx, table_id: int, places: Iterable[str | None], *, kept: bool = False, trash_of: str | None = None
    ) -> list[Change]:
        """Record in the transaction that drops their object which directories go, also those inside another.

        ``trash_of``: the user whose trash gets them, where there is one; None: they are removed.
        """
        doomed = outermost(place for place in places if place)
        targets = [self._place_in_trash(place, trash_of) for place in doomed]
        return store.insert_removals(pg, self.owner, table_id, doomed, targets, kept=kept)

    def _place_in_trash(self, place: str, user: str | None) -> str | None:
        root = self.files.roots.above(place) if self.has_trash and self.files.roots is not None else None
        return None if user is None or root is None else place_in_trash(place, root, user)

    def remove(self, removals: Sequence[Change]) -> None:
        """Remove the directories after COMMIT. A failure is logged, and tried again by ``settle_moves``."""
        if removals:
            with Ownership(self.db, removals, self.owner):
                self._remove(removals)

    @contextmanager
    def emptying(self, removals: Sequence[Change]) -> Iterator[None]:
        """Work inside places that stay ours meanwhile.

        If this process dies, the files stay: their object still has them.
        """
        if not removals:
            yield
            return
        with Ownership(self.db, removals, self.owner):
            try:
                yield
            finally:
                with self.db.begin() as pg:
                    store.delete_changes(pg, removals, self.owner)

    @contextmanager
    def held(self, place: str) -> Iterator[Ownership]:
        """Keep other processes from putting an object into a place while the caller checks and removes it.

        Inside the block, every call that was about to put an object there has finished. Raises: UnavailableError.
        """
        with self.db.begin() as pg:
            self.require_free(pg, [place])
            hold = store.insert_hold(pg, self.owner, place)
        with Ownership(self.db, [hold], self.owner) as ours:
            try:
                with self.db.begin() as pg:
                    store.lock_creators(pg)
                yield ours
            finally:
                with self.db.begin() as pg:
                    store.delete_changes(pg, [hold], self.owner)

    # Leftovers

    def settle_moves(self) -> int:
        """End the changes whose process died; return how many were worked on.

        Serialises on: each row, for a moment. A move that was not committed is undone, all else finished. Each host has
        a thread of its own, and a silent host is not waited for longer than ``patience_s``.
        """
        with self.db.begin() as pg:
            abandoned = store.claim_abandoned(pg, self.owner)
        by_host: dict[str, list[tuple[Change, Phase, bool]]] = {}
        for pair in abandoned:
            by_host.setdefault(host_of(pair[0].source), []).append(pair)
        threads = [
            Thread(target=self._settle, args=(host, ours), name=f"settle-{host}", daemon=True)
            for host, ours in by_host.items()
            if host not in self.settling
        ]
        self.settling.update(by_host)
        for thread in threads:
            thread.start()
        ends_at = monotonic() + self.patience_s
        for thread in threads:
            thread.join(max(0.0, ends_at - monotonic()))
        return len(abandoned)

    def _settle(self, host: str, abandoned: Sequence[tuple[Change, Phase, bool]]) -> None:
        try:
            for change, phase, is_over in abandoned:
                try:
                    self._settle_one(change, phase, is_over=is_over)
                except Exception:  # noqa: BLE001 - as in a loop's tick: the row is still there for the next round
                    _log.exception("directory_change_not_settled", source=change.source)
        finally:
            self.settling.discard(host)

    def _settle_one(self, change: Change, phase: Phase, *, is_over: bool) -> None:
        with self.db.begin() as pg:
            if not store.update_renewed(pg, [change], self.owner):
                return  # Another process took the change, because the changes before it took long.
        with Ownership(self.db, [change], self.owner):
            if phase is Phase.DONE:
                self._remove([change], for_good=is_over)
            else:
                self._undo(change, for_good=is_over)

    def _go_on(self, move: Change, before: Phase, after: Phase) -> None:
        with self.db.begin() as pg:
            self._require(pg, move, before, after)

    def _require(self, pg: PgTx, move: Change, before: Phase, after: Phase) -> None:
        if not store.update_phase(pg, move, self.owner, before, after):
            raise UnavailableError(f"Moving {move.source} took too long, nothing was changed, try again")

    def _require_no(self, target: str) -> None:
        if self._exists(target):  # The directory was made by a process that did not ask: it is not ours to touch.
            raise InvalidOperationError(f"New location for this table {target} already exists")

    def _exists(self, place: str) -> bool:
        return Directories(self.files).exists(place)

    def _in_one_step(self, move: Change) -> bool:
        try:
            return self.files.moves_in_one_step(move.source, move.target or "")
        except OSError as error:
            raise InvalidOperationError(f"Unable to move {move.source} to {move.target}: {error}") from error

    def _bring(self, move: Change, ours: Ownership, *, copied: bool) -> None:
        try:
            if move.kept:
                change_management.keep(self.files, move.source)
            if copied:
                self.files.copy(move.source, move.target or "", ours.require)
            else:
                self.files.rename(move.source, move.target or "")
        except OSError as error:
            raise InvalidOperationError(f"Unable to move {move.source} to {move.target}: {error}") from error

    def _take_back(self, move: Change, *, brought: bool) -> None:
        """Undo a move that failed, and end this process's work on the move.

        If this fails too, ``settle_moves`` has the row.
        """
        try:
            if brought:
                self._go_on(move, Phase.BEGUN, Phase.UNDOING)
                self._files_back(move)
            with self.db.begin() as pg:
                store.delete_changes(pg, [move], self.owner)
        except (MetastoreError, OSError) as error:
            _log.warning("directory_move_not_undone", source=move.source, target=move.target, reason=str(error))

    def _undo(self, move: Change, *, for_good: bool) -> None:
        """Undo a move.

        Its owner may still live and do its last step, so the row stays for the grace, and the next round repeats this.
        """
        try:
            self._files_back(move)
            with self.db.begin() as pg:
                store.update_phase(pg, move, self.owner, Phase.UNDOING, Phase.UNDONE)
                if for_good:
                    store.delete_changes(pg, [move], self.owner)
        except (MetastoreError, OSError) as error:
            _log.warning("directory_move_not_undone", source=move.source, target=move.target, reason=str(error))

    def _files_back(self, move: Change) -> None:
        """Bring files back to ``source``, which the catalog names.

        A copy is removed; renamed files come back one by one if both exist.
        """
        target = move.target or ""
        if not self.files.exists(target):
            return
        _log.warning("directory_move_undone", source=move.source, target=target)
        if not self.files.exists(move.source):
            self.files.rename(target, move.source)
            return
        if self.files.moves_in_one_step(move.source, target):
            for entry in self.files.listing(target):
                to = f"{move.source}/{entry.path}"
                if not entry.is_dir and not self.files.exists(to):
                    self.files.rename(f"{target}/{entry.path}", to)
        self.files.delete(target)

    def _remove(self, changes: Sequence[Change], *, for_good: bool = True) -> None:
        """Remove each ``source``, unless an object that is unknown here has it by now."""
        with self.db.begin() as pg:
            store.lock_creators(pg)
            found = [
                user
                for table_id in {change.table_id for change in changes}
                for user in select_users(
                    pg,
                    [change.source for change in changes if change.table_id == table_id],
                    table_id,
                    (),
                    own_counts=True,
                )
            ]
        users = {user.place: user.name for user in found}
        removed = []
        for change in changes:
            if change.source in users:
                _log.warning("directory_kept", location=change.source, used_by=users[change.source])
                removed.append(change)
                continue
            try:
                trash = change.target if is_in_trash(change.source, change.target) else None
                is_removal = trash is not None or change.target is None  # A moved file was kept before the move.
                change_management.remove(self.files, change.source, kept=change.kept and is_removal, trash=trash)
                removed.append(change)
            except OSError as error:  # The next round finds the row again.
                _log.warning("directory_not_removed", location=change.source, reason=str(error))
        if for_good:
            with self.db.begin() as pg:
                store.delete_changes(pg, removed, self.owner)
