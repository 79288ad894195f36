"""Changes that another metastore makes to tables whose history is here: both sides stay right, whichever dies when.

Rule (ADR 50): noted before the upstream hears of it, followed after it said yes, both in PostgreSQL transactions of
ours; the note is locked in between. A note that is not locked was left by a dead process, and is judged by the
upstream's state. Forgetting and renaming may be done late, and twice.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import NamedTuple, Protocol

from metastore.catalog.rules import transactional
from metastore.catalog.rules.upstream_changes import ChangeKind, Note, NoteVerdict, SeenUpstream, verdict
from metastore.catalog.service.exclusive import (
    ANYBODY,
    database_object,
    partition_objects,
    require_exclusive,
    table_object,
)
from metastore.catalog.store import acid_history
from metastore.catalog.store import upstream_changes as store
from metastore.db import failpoints
from metastore.db.engine import Database, PgTx
from metastore.errors import MetastoreError, UnavailableError
from metastore.ids import DatabaseName, TableName
from metastore.locks.rules import Changer
from metastore.telemetry.logs import get_logger
from metastore.txns.core import store as txn_store
from metastore.txns.core.rules import Component, Operation

_log = get_logger(__name__)


class Forwarded(NamedTuple):
    """The upstream's answer and outcome: ``ok``, or the exception that the answer is."""

    reply: bytes
    outcome: str

    @property
    def was_done(self) -> bool:
        """True if the upstream made the change."""
        return self.outcome == "ok"


class OutcomeLostError(UnavailableError):
    """Error: the outcome at the upstream is unknown."""


Forward = Callable[[], Forwarded]
"""Asks the upstream. Raises: OutcomeLostError, or UnavailableError where it has certainly done nothing."""


class Tables(Protocol):
    """The questions that the upstream must answer. Raises: UnavailableError."""

    def identity(self, name: TableName) -> int | None:
        """Return an id that differs from that of any later table with the same name; None if there is no such table."""

    def has_partition(self, name: TableName, partition: str) -> bool:
        """Return True if the table has the partition (by canonical name)."""

    def is_transactional(self, name: TableName) -> bool | None:
        """Return True if the table is transactional; None: there is no such table."""

    def partitions(self, name: TableName) -> list[str]:
        """Return the canonical names of a table's partitions; for a table without partitions a single empty name."""


@dataclass(frozen=True)
class UpstreamChanges:
    """The calls that both metastores have to know."""

    db: Database
    tables: Tables
    patience: timedelta
    """The time that the upstream may take for a change after its client died."""

    def drop_table(self, name: TableName, forward: Forward, changer: Changer = ANYBODY) -> Forwarded:
        """Forget the history of a table that the upstream drops.

        Serialises on: the tail of the database's lock queue, before the change goes to the upstream.
        Raises: HeldUpError, UnavailableError.
        """
        identity = self.tables.identity(name) if self._has_history(name) else None
        with self.db.begin() as pg:
            require_exclusive(pg, f"DROP TABLE {name}", table_object(name), changer)
            notes = self._drops(pg, [(name, identity)]) if identity is not None else []
            ids = store.insert_notes(pg, notes)
        return self._carried(ids, forward)

    def drop_database(self, name: DatabaseName, forward: Forward, changer: Changer = ANYBODY) -> Forwarded:
        """Forget the history of everything in a database that the upstream drops, as ``drop_table``."""
        with self.db.begin() as pg:
            require_exclusive(pg, f"DROP DATABASE {name}", database_object(name), changer)
            ids = store.insert_notes(pg, self._drops(pg, [(table, 0) for table in store.select_tables(pg, name)]))
        return self._carried(ids, forward)

    def drop_partitions(
        self, name: TableName, partitions: Sequence[str] | None, forward: Forward, changer: Changer = ANYBODY
    ) -> Forwarded:
        """Forget the history of partitions that the upstream drops; None: all that it lacks afterwards."""
        identity = self.tables.identity(name) if self._has_history(name) else None
        with self.db.begin() as pg:
            require_exclusive(pg, f"DROP PARTITION of {name}", partition_objects(name, partitions or ()), changer)
            known = store.select_partitions(pg, name) if identity is not None else []
            wanted = (
                known
                if partitions is None
                else [partition_name for partition_name in known if partition_name in set(partitions)]
            )
            mark = store.select_mark(pg, name) or 1
            ids = store.insert_notes(
                pg,
                [Note(ChangeKind.DROP_PARTITION, name, identity or 0, mark, pg.now, partition) for partition in wanted],
            )
        return self._carried(ids, forward, look=partitions is None)

    def rename_table(self, name: TableName, new: TableName, forward: Forward, changer: Changer = ANYBODY) -> Forwarded:
        """Let a table's history follow the name that the upstream gives it.

        Serialises on: the rows from which both names' write ids are allocated, while the upstream is at it.
        Raises: HeldUpError, UnavailableError.
        """
        if not self._has_history(name) or name.catalog != new.catalog:
            return forward()
        identity = self.tables.identity(name)
        if identity is None or self.tables.identity(new) is not None:
            return forward()  # The upstream refuses this.
        with self.db.begin() as pg:
            require_exclusive(pg, f"ALTER TABLE {name} RENAME", table_object(name), changer)
            note = Note(
                ChangeKind.RENAME_TABLE, name, identity, store.select_mark(pg, name) or 1, pg.now, new_table=new
            )
            ids = store.insert_notes(pg, [note])
            store.copy_owners(pg, note)
        return self._carried(ids, forward)

    def rename_partition(
        self, name: TableName, partition: str, new: str, forward: Forward, changer: Changer = ANYBODY
    ) -> Forwarded:
        """Let a partition's history follow its new name, as ``drop_table``."""
        identity = self.tables.identity(name) if self._has_history(name) and partition != new else None
        if identity is None:
            return forward()
        with self.db.begin() as pg:
            require_exclusive(pg, f"RENAME PARTITION of {name}", partition_objects(name, [partition]), changer)
            ids = store.insert_notes(
                pg,
                [
                    Note(
                        ChangeKind.RENAME_PARTITION,
                        name,
                        identity,
                        store.select_mark(pg, name) or 1,
                        pg.now,
                        partition,
                        new_partition=new,
                    )
                ],
            )
        return self._carried(ids, forward)

    def convert(self, name: TableName, forward: Forward) -> Forwarded:
        """Give a table its seed before it becomes transactional; without the alteration the seed does no harm."""
        if not self._has_history(name) and self.tables.is_transactional(name) is False:
            with self.db.begin() as pg:
                acid_history.insert_write_id_seed(pg, name, transactional.CONVERSION_SEED)
        return forward()

    def truncate(self, name: TableName, partitions: Sequence[str] | None, write_id: int, forward: Forward) -> Forwarded:
        """Record a component for a truncation's transaction, or its base would count after an abort."""
        with self.db.begin() as pg:
            owner = acid_history.select_owner(pg, name, write_id)
        if owner is not None:
            emptied = self.tables.partitions(name) if partitions is None else partitions
            with self.db.begin() as pg:
                txn_store.lock_for_adding(pg, [owner])
                txn_store.insert_components(
                    pg, [Component(owner, name, partition, Operation.UPDATE, write_id) for partition in emptied]
                )
        return forward()

    def require_settled(self, pg: PgTx, name: TableName) -> None:
        """Raise UnavailableError while the upstream may be dropping or renaming the table, or a partition of it."""
        if store.is_noted(pg, name):
            raise UnavailableError(f"{name} is being dropped or renamed by the upstream, try again")

    def settle(self) -> int:
        """End the changes of dead processes; return their number.

        If the upstream does not answer for one table, the next round asks again; other tables do not wait.
        """
        settled, after = 0, 0
        while True:
            with self.db.begin() as pg:
                note = store.claim_next(pg, after)
                if note is None:
                    return settled
                after = note.id
                try:
                    seen = self._seen(note)
                except MetastoreError as error:
                    _log.warning("upstream_change_not_judged", table=str(note.table), reason=str(error))
                    continue
                judged = verdict(note, seen, pg.now, self.patience)
                if judged is not NoteVerdict.WAIT:
                    self._follow(pg, note, done=judged is NoteVerdict.HAPPENED)
                    settled += 1
            _log.info(
                "upstream_change_settled",
                kind=note.kind.value,
                table=str(note.table),
                partition=note.partition,
                verdict=judged.value,
            )

    def _has_history(self, name: TableName) -> bool:
        return store.select_mark(self.db, name) is not None

    def _drops(self, pg: PgTx, tables: Sequence[tuple[TableName, int]]) -> list[Note]:
        return [
            Note(ChangeKind.DROP_TABLE, name, identity, store.select_mark(pg, name) or 1, pg.now)
            for name, identity in tables
        ]

    def _carried(self, ids: Sequence[int], forward: Forward, *, look: bool = False) -> Forwarded:
        """Ask the upstream with the notes locked, and follow its answer. ``look``: reads its state, note by note."""
        if not ids:
            return forward()
        answers: list[Forwarded | UnavailableError] = []
        try:
            failpoints.hit("upstream.noted")
            with self.db.begin() as pg:
                notes = self._taken_up(pg, ids)
                answers.append(_answer(forward))
                failpoints.hit("upstream.answered")
                done = isinstance(answers[0], Forwarded) and answers[0].was_done
                for note in notes:
                    self._follow(
                        pg, note, done=done and not (look and self.tables.has_partition(note.table, note.partition))
                    )
        except MetastoreError as error:
            if not answers:
                raise
            # The client gets the upstream's answer; the house-keeping loop settles the note later.
            _log.warning("upstream_change_left", notes=list(ids), reason=str(error))
        [answer] = answers
        if isinstance(answer, UnavailableError):
            raise answer
        return answer

    @staticmethod
    def _taken_up(pg: PgTx, ids: Sequence[int]) -> list[Note]:
        notes = store.lock_notes(pg, ids)
        if len(notes) != len(ids):
            raise UnavailableError("The change was settled by somebody else meanwhile, nothing was done, try again")
        for note in notes:
            if note.kind is ChangeKind.RENAME_TABLE:
                store.lock_ids(pg, note)
        return notes

    def _follow(self, pg: PgTx, note: Note, *, done: bool) -> None:
        if note.kind is ChangeKind.RENAME_TABLE:
            (store.rename if done else store.drop_copies)(pg, note)
        elif done and note.kind is ChangeKind.RENAME_PARTITION:
            acid_history.rename_partition_history(pg, note.table, note.partition, note.new_partition)
        elif done:
            store.forget(pg, note)
        store.delete_notes(pg, [note.id])

    def _seen(self, note: Note) -> SeenUpstream:
        identity = self.tables.identity(note.table)
        return SeenUpstream(
            identity,
            bool(note.partition) and identity is not None and self.tables.has_partition(note.table, note.partition),
        )


def _answer(forward: Forward) -> Forwarded | UnavailableError:
    """Return the upstream's answer, or the error that nothing reached it. Raises: OutcomeLostError."""
    try:
        return forward()
    except OutcomeLostError:
        raise
    except UnavailableError as error:
        return error
