"""Bugs to plant in a server, to show that the checker finds them."""

from collections.abc import Callable
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
    """What was aborted is forgotten when its files are gone, whoever may still publish: as Hive does it."""
    from metastore.compaction.cleaning import store

    forget: Callable[..., int] = store.delete_aborted

    def delete_aborted(*args: Any, **options: Any) -> int:
        return forget(*args, **{**options, "covered": store.GONE})

    replace(store, "delete_aborted", delete_aborted)


def replace(module: Any, name: str, broken: Any) -> None:
    """Put something broken in the place of something that must be there."""
    if not hasattr(module, name):
        raise SystemExit(f"{module.__name__} has no {name}: the bug cannot be planted any more")
    setattr(module, name, broken)


BUGS = {bug.__name__: bug for bug in (first_committer_wins, gap_free_counter, lock_matrix, forgetful_cleaner)}

