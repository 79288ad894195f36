"""Moves and removals of directories: no lock is held meanwhile, no crash loses anything, nothing of another is touched.

The disk stands for an object store where ``copies`` is asked for: a rename is a copy, then a removal of the old place.
"""

import threading
from datetime import timedelta

import pytest

from metastore.catalog.service.moves import DirectoryMoves
from metastore.catalog.service.ownership import Ownership
from metastore.catalog.store import directory_changes as store
from metastore.catalog.store.directory_changes import GRACE, LEASE
from metastore.client import MetastoreClient
from metastore.errors import MetaError, UnavailableError
from metastore.files import Files
from metastore.thrift_gen.hive_metastore import ttypes as T
from tests.integration.catalog.conftest import Hive

SECOND = timedelta(seconds=1)


@pytest.fixture
def copies(monkeypatch):
    """No rename in one step."""
    monkeypatch.setattr(Files, "moves_in_one_step", lambda *_: False)


@pytest.fixture
def replica(database):
    """Another process."""
    return DirectoryMoves(database, Files())


@pytest.fixture
def t(d):
    """Create ``d.t`` with data in two parts, and return its directory."""
    directory = d.path(d.create().sd.location)
    (directory / "p=1").mkdir()
    (directory / "data").write_text("x")
    (directory / "p=1" / "more").write_text("y")
    return directory


def files_of(directory):
    return {str(path.relative_to(directory)): path.read_text() for path in directory.rglob("*") if path.is_file()}


WHOLE = {"data": "x", "p=1/more": "y"}


def rename(hive, old="t", new="new"):
    table = hive.get_table("d", old)
    table.tableName = new
    hive.alter_table("d", old, table)


def renaming(hive):
    """Announce the move of a rename, in this thread, and return the move."""
    place = hive.get_table("d", "t").sd.location
    with hive.moves.db.begin() as pg:
        return hive.moves.announce(pg, hive.get_table("d", "t").id, place, f"{place.removesuffix('t')}new")


def changes(database):
    return [phase for (phase,) in database.once("SELECT phase FROM directory_changes")]


def held_up(monkeypatch, method, during):
    """``during`` runs in the middle of the first call of a method of Files, in a thread of its own."""
    done, original = [], getattr(Files, method)

    def slow(self, *args, **kwargs):
        if not done:
            done.append(True)
            during()
        return original(self, *args, **kwargs)
    monkeypatch.setattr(Files, method, slow)
    return done


def elsewhere(work):
    """Run in another thread, as another call would; its result, or its error."""
    results = []

    def run():
        try:
            results.append(work())
        except Exception as error:  # noqa: BLE001 - looked at by the test
            results.append(error)
    thread = threading.Thread(target=run)
    thread.start()
    thread.join(60)
    assert not thread.is_alive(), "it waits for a lock"
    return results[0]


@pytest.mark.parametrize("method", ["rename", "copy"])
def test_no_lock_is_held_while_files_move(d, t, database, monkeypatch, request, method):
    """A writer's commit waited for the rows of its table's history, and everybody else for the writer."""
    if method == "copy":
        request.getfixturevalue("copies")
    database.once("INSERT INTO completed_txn_components (txn_id, catalog, db, \"table\", partition, write_id, update_delete, at)"
                  " VALUES (1, 'hive', 'd', 't', '', 1, false, metastore_now())")

    def locks_nothing():
        with database.begin() as pg:
            pg.sql("SET LOCAL lock_timeout = '1s'")
            for table in ("tables", "databases", "completed_txn_components", "directory_changes", "next_write_ids"):
                pg.sql(f"SELECT 1 FROM {table} FOR UPDATE NOWAIT")
            [(sessions,)] = pg.sql("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
                                   " AND state = 'idle in transaction' AND pid <> pg_backend_pid()")
        return sessions
    seen = []
    done = held_up(monkeypatch, method, lambda: seen.append(elsewhere(locks_nothing)))
    rename(d)
    assert (done, seen) == ([True], [0])
    assert files_of(t.parent / "new") == WHOLE
    assert not t.exists()
    assert changes(database) == []


@pytest.mark.parametrize("kind", ["drop", "truncate", "drop_partition", "drop_database"])
def test_no_lock_is_held_while_files_are_removed(d, t, database, monkeypatch, kind):
    if kind == "drop_partition":
        d.create("parts", keys="p:string")
        d.add("1", table="parts")

    def open_transactions():
        return database.once("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
                             " AND state = 'idle in transaction'")[0][0]
    seen = []
    done = held_up(monkeypatch, "delete_children" if kind == "truncate" else "delete", lambda: seen.append(elsewhere(open_transactions)))
    {"drop": lambda: d.drop_table("d", "t", True), "truncate": lambda: d.truncate_table("d", "t", None),
     "drop_partition": lambda: d.drop_partition("d", "parts", ["1"], True),
     "drop_database": lambda: d.drop_database("d", True, True)}[kind]()
    assert (done, seen) == ([True], [0])
    assert changes(database) == []


def test_a_starting_replica_leaves_a_copy_alone(d, t, database, monkeypatch, copies, replica):
    """Its session with PostgreSQL may be dead while the process still copies."""
    def a_replica_starts():
        database.once("SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                      " WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'")
        assert replica.settle_moves() == 0
    done = held_up(monkeypatch, "copy", lambda: elsewhere(a_replica_starts))
    rename(d)
    assert done
    assert files_of(t.parent / "new") == WHOLE
    assert d.get_table("d", "new").sd.location == f"file:{t.parent}/new"
    assert changes(database) == []


@pytest.mark.parametrize("where", ["before", "after"])
def test_a_copy_that_was_taken_for_abandoned_changes_nothing(d, t, database, monkeypatch, copies, replica, test_clock, where):
    """The process was stopped for longer than the lease, another one undid its move; then it goes on."""
    def replaced():
        test_clock.advance(LEASE + SECOND)
        assert replica.settle_moves() == 1
    if where == "before":
        held_up(monkeypatch, "copy", replaced)
    else:
        monkeypatch.setattr("metastore.catalog.service.moves.failpoints.hit", lambda name: replaced() if name == "moves.after_bring" else None)
    with pytest.raises(T.MetaException, match="took too long"):
        rename(d)
    assert files_of(t) == WHOLE
    assert d.get_all_tables("d") == ["t"]
    with pytest.raises(T.MetaException, match="being moved"):
        d.create("new")  # what the slow process left must go first
    test_clock.advance(GRACE + SECOND)
    replica.settle_moves()
    assert not (t.parent / "new").exists()
    d.create("new")


@pytest.mark.parametrize("one_step", [True, False])
def test_a_crash_with_the_files_at_the_new_place(d, t, database, monkeypatch, replica, test_clock, one_step):
    monkeypatch.setattr(Files, "moves_in_one_step", lambda *_: one_step)

    class Killed(BaseException):
        """Nothing behind it runs."""
    move = renaming(d)
    monkeypatch.setattr(DirectoryMoves, "_take_back", lambda *_, **__: None)
    with pytest.raises(Killed), d.moves.moving(move):
        raise Killed
    assert files_of(t.parent / "new") == WHOLE
    assert changes(database) == ["begun"]
    assert replica.settle_moves() == 0
    test_clock.advance(LEASE + SECOND)
    assert replica.settle_moves() == 1
    assert files_of(t) == WHOLE
    assert not (t.parent / "new").exists()
    d.drop_table("d", "t", True)


def test_a_crash_after_the_commit_of_a_copy(d, t, database, monkeypatch, copies, replica, test_clock):
    monkeypatch.setattr(DirectoryMoves, "_remove", lambda *_, **__: None)
    rename(d)
    monkeypatch.undo()
    assert files_of(t) == files_of(t.parent / "new") == WHOLE
    with pytest.raises(T.MetaException, match="being moved"):
        d.create("t")
    test_clock.advance(LEASE + SECOND)
    replica.settle_moves()
    assert files_of(t.parent / "new") == WHOLE
    assert not t.exists()
    test_clock.advance(GRACE + SECOND)
    replica.settle_moves()
    assert changes(database) == []
    d.create("t")


def test_a_crash_before_anything_moved(d, t, database, replica, test_clock):
    renaming(d)
    (t.parent / "new").mkdir()  # by somebody who did not ask
    test_clock.advance(LEASE + SECOND)
    assert replica.settle_moves() == 0
    assert changes(database) == []
    assert files_of(t) == WHOLE
    assert (t.parent / "new").exists()


def test_while_a_table_moves(d, t, database):
    move = renaming(d)
    for call in (lambda: d.drop_table("d", "t", True), lambda: d.truncate_table("d", "t", None), lambda: rename(d, new="other"),
                 lambda: d.drop_database("d", True, True), lambda: d.create("new"),
                 lambda: d.create("inside", sd={"location": f"file:{t.parent}/new/inside"})):
        with pytest.raises((T.MetaException, T.InvalidOperationException), match="being (renamed|moved)"):
            call()
    with d.moves.moving(move):
        pass
    assert changes(database) == []


@pytest.mark.parametrize("method", ["rename", "copy"])
def test_a_failing_move_leaves_everything(d, t, database, monkeypatch, request, method):
    if method == "copy":
        request.getfixturevalue("copies")

    def refused(*_, **__):
        raise PermissionError("not yours")
    monkeypatch.setattr("metastore.files.shutil.move", refused)
    monkeypatch.setattr("metastore.files.shutil.copy2", refused)
    with pytest.raises(T.InvalidOperationException, match="not yours"):
        rename(d)
    assert d.get_all_tables("d") == ["t"]
    assert files_of(t) == WHOLE
    assert not (t.parent / "new").exists()
    assert changes(database) == []


def test_a_refused_commit_brings_the_directory_back(d, t, database, monkeypatch):
    def refused(*_):
        assert files_of(t.parent / "new") == WHOLE
        raise MetaError("PostgreSQL says no")
    monkeypatch.setattr("metastore.catalog.store.tables.update_table", refused)
    with pytest.raises(T.MetaException, match="says no"):
        rename(d)
    assert files_of(t) == WHOLE
    assert not (t.parent / "new").exists()
    assert changes(database) == []


def test_a_taken_place_is_not_touched(d, t, database):
    (t.parent / "new").mkdir()
    with pytest.raises(T.InvalidOperationException, match="already exists"):
        rename(d)
    assert files_of(t) == WHOLE
    assert (t.parent / "new").exists()
    assert changes(database) == []


# Removals

def test_a_drop_removes_nothing_of_who_comes_after(d, t, database, monkeypatch):
    """Between its COMMIT and the removal somebody makes a table of the same name: it is told to wait, and loses nothing."""
    answers, others = [], []
    held_up(monkeypatch, "delete", lambda: answers.append(elsewhere(others[0].create)))
    with MetastoreClient(d.client.uri, user="bob") as client:
        others.append(Hive(client, d.warehouse, d.moves))
        d.drop_table("d", "t", True)
    assert "is being moved, emptied or removed" in str(answers[0])
    d.create()
    assert t.is_dir()
    assert changes(database) == []


def test_a_removal_waits_for_who_was_about_to_take_the_place(d, t, database, monkeypatch):
    """A table with this location is being committed, and nobody can see it yet."""
    entered, go_on = threading.Event(), threading.Event()
    original = DirectoryMoves.require_free

    def slow(self, pg, places):
        original(self, pg, places)
        entered.set()
        assert go_on.wait(60)
    with MetastoreClient(d.client.uri, user="bob") as client:
        other = Hive(client, d.warehouse, d.moves)
        monkeypatch.setattr(DirectoryMoves, "require_free", slow)
        making = threading.Thread(target=lambda: other.create("u", sd={"location": f"file:{t}"}))
        go_on.set()  # the first look, before the directory is made
        making.start()
        assert entered.wait(60)
        making.join(60)
        d.drop_table("d", "t", True)
    assert files_of(t) == WHOLE
    assert d.get_table("d", "u").sd.location == f"file:{t}"


def test_a_crash_between_drop_and_removal(d, t, database, monkeypatch, replica, test_clock):
    monkeypatch.setattr(DirectoryMoves, "remove", lambda *_: None)
    d.drop_table("d", "t", True)
    monkeypatch.undo()
    assert files_of(t) == WHOLE
    test_clock.advance(LEASE + SECOND)
    assert replica.settle_moves() == 1
    assert not t.exists()


def test_a_crash_in_a_truncation_removes_no_table(d, t, database, monkeypatch, replica, test_clock):
    with database.begin() as pg:
        d.moves.announce_removals(pg, d.get_table("d", "t").id, [f"file:{t}"])
    test_clock.advance(LEASE + GRACE + SECOND)
    replica.settle_moves()
    test_clock.advance(LEASE + GRACE + SECOND)
    replica.settle_moves()
    assert files_of(t) == WHOLE
    assert changes(database) == []


def test_a_removal_that_fails_is_tried_again(d, t, database, monkeypatch, test_clock):
    def away(*_, **__):
        raise OSError("not mounted")
    monkeypatch.setattr(Files, "delete", away)
    d.drop_table("d", "t", True)
    monkeypatch.undo()
    assert changes(database) == ["done"]
    test_clock.advance(LEASE + SECOND)
    d.moves.settle_moves()
    assert not t.exists()


def test_an_owner_renews(d, t, database, monkeypatch, replica, test_clock):
    """However long its work takes."""
    monkeypatch.setattr("metastore.catalog.service.ownership._PAUSE_S", 0.01)
    move, renewed = renaming(d), threading.Event()
    original = store.update_renewed

    def told(*args):
        answer = original(*args)
        renewed.set()
        return answer
    monkeypatch.setattr(store, "update_renewed", told)
    with Ownership(database, [move], d.moves.owner):
        test_clock.advance(LEASE + SECOND)
        for _ in range(2):  # one may have begun before the clock was moved
            renewed.clear()
            assert renewed.wait(60)
        assert replica.settle_moves() == 0
    assert changes(database) == ["announced"]


def test_who_could_not_renew_stops(d, database, monkeypatch):
    ownership = Ownership(database, [store.Change(1, 1, "file:/a", "file:/b")], "o")
    ownership.require()
    ownership._renewed_at -= LEASE.total_seconds()  # a clock that only this process has
    with pytest.raises(UnavailableError, match="interrupted"):
        ownership.require()


def test_a_change_that_cannot_be_settled_holds_up_no_other_of_its_host(database, tmp_path, monkeypatch, replica, test_clock):
    places = [tmp_path / "a", tmp_path / "b"]
    for place in places:
        place.mkdir()
    remove = Files.delete

    def broken(files, uri, *, recursive=True):
        if uri.endswith("/a"):
            raise RuntimeError("what nobody thought of")
        remove(files, uri, recursive=recursive)

    monkeypatch.setattr(Files, "delete", broken)
    with database.begin() as pg:
        DirectoryMoves(database, Files()).announce_removals(pg, 0, [f"file:{place}" for place in places])
    test_clock.advance(LEASE + SECOND)
    replica.settle_moves()
    assert [place.exists() for place in places] == [True, False]
