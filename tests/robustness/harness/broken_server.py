"""Bugs to plant in a server, to show that the checker finds them."""

import shutil
from collections.abc import Callable
from pathlib import Path
from threading import Event
from typing import Any


def first_committer_wins() -> None:
    """Nobody loses a conflict."""
    from metastore.txns.commit import service as commit_service
    from metastore.txns.commit import store as commit_store

    replace(commit_store, "commit_uncontended", lambda *_args, **_options: False)
    replace(commit_service, "first_conflict", lambda *_args: None)


def gap_free_counter() -> None:
    """Ids are given out by one PostgreSQL transaction and appear as open by another, a little later."""
    from metastore.txns.core import store
    from metastore.txns.core.store import Opened

    opened: Callable[..., Opened] = store.insert_txns

    def insert_txns(db: Any, wanted: Any, *, durable: bool) -> Opened:
        first = opened(db, wanted, durable=True)
        ids = list(range(first.first_id, first.first_id + sum(one.size for one in wanted)))
        hidden = db.once("DELETE FROM txns WHERE id = ANY(%s) RETURNING txns.*::text", (ids,))
        Event().wait(0.05)
        for (row,) in hidden:
            db.once("INSERT INTO txns SELECT (%s::txns).*", (row,))
        return first

    replace(store, "insert_txns", insert_txns)


def lock_matrix() -> None:
    """Exclusive locks get on with each other, for transactions and without."""
    from metastore.locks import rules

    together = rules.WAITS_FOR[rules.LockType.EXCLUSIVE] - {rules.LockType.EXCLUSIVE}
    rules.WAITS_FOR[rules.LockType.EXCLUSIVE] = together


def forgetful_cleaner() -> None:
    """Make the Cleaner forget aborted writes when their files are gone, whoever may still publish: as Hive does it."""
    from metastore.compaction.cleaning import store
    from metastore.compaction.cleaning.rules import GONE, is_forgettable

    replace(store, "is_forgettable", lambda write, up_to, keep, _covered: is_forgettable(write, up_to, keep, GONE))


def hasty_worker() -> None:
    """Make a Worker remove its inputs a little before anybody may read its result."""
    from metastore.acid.names import parse_directory
    from metastore.loops.worker import _Work

    commit: Callable[..., None] = _Work._commit

    def hasty(work: Any, started: Any) -> None:
        for path in Path(work._location.removeprefix("file://").removeprefix("file:")).glob("delta_*"):
            name: Any = parse_directory(path.name)
            if not name.visibility_txn_id and name.max_write_id <= started.highest_write_id:
                shutil.rmtree(path, ignore_errors=True)
        Event().wait(0.3)
        commit(work, started)

    replace(_Work, "_commit", hasty)


def short_compaction() -> None:
    """Make a compaction report a highest write id that is some ids too low."""
    from metastore.compaction.working.service import Started

    highest: Any = Started.highest_write_id
    replace(Started, "highest_write_id", property(lambda started: max(1, highest.fget(started) - 5)))


def deaf_cleaner() -> None:
    """Make the Cleaner ignore transactions that declared their tables, as if these could only be other tables."""
    from metastore.compaction.cleaning import store
    from metastore.compaction.cleaning.rules import DeclaredReading, OpenTxn

    select: Callable[..., list[OpenTxn]] = store.select_open_txns

    def select_open_txns(*args: Any) -> list[OpenTxn]:
        return [txn for txn in select(*args) if txn.reading is DeclaredReading.ANYTHING]

    replace(store, "select_open_txns", select_open_txns)


def no_notes() -> None:
    """Keep the Cleaner from noting transactions that it did not wait for: they may read the table later."""
    from metastore.compaction.cleaning import service, store
    from metastore.compaction.cleaning.rules import may_read

    replace(store, "insert_waived", lambda *_args: None)
    replace(service, "may_come_to_read", may_read)


def replace(module: Any, name: str, broken: Any) -> None:
    """Put something broken in the place of something that must be there."""
    if not hasattr(module, name):
        raise SystemExit(f"{module.__name__} has no {name}: the bug cannot be planted any more")
    setattr(module, name, broken)


BUGS = {bug.__name__: bug for bug in (
    first_committer_wins, gap_free_counter, lock_matrix, forgetful_cleaner, hasty_worker, short_compaction, deaf_cleaner, no_notes)}

