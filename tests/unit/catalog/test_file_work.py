"""The pool in which files are worked on: given up, refused, never cut off."""

import math
import threading
from contextlib import contextmanager

import pytest

from metastore.file_work import AT_ONCE, BoundedFiles, FilePool, NoAnswerFromFilesError
from metastore.files import Made
from tests.support.silent_files import ANSWERS, silent_files
from tests.support.thrift_server import until

SILENT, OTHER = "hdfs://silent/x", f"hdfs://{ANSWERS}/x"


@pytest.fixture
def silent():
    with silent_files() as found:
        yield found


def files(threads=8, timeout_s=0.05, **more):
    return BoundedFiles(pool=FilePool(threads, timeout_s), schemes=("file", "hdfs"), **more)


def test_an_answer_is_passed_on_and_so_is_an_error(tmp_path):
    (tmp_path / "a").mkdir()
    found, place = files(timeout_s=20), tmp_path.as_uri()
    assert found.mkdirs(f"{place}/b")
    assert found.children(place) == ["a", "b"]
    assert [entry.path for entry in found.listing(place)] == ["a", "b"]
    assert found.listing(f"{place}/none") == []
    found.write(f"{place}/f", b"x")
    found.rename(f"{place}/f", f"{place}/g")
    with found.open(f"{place}/g") as opened:
        assert opened.read() == b"x"
    found.put_over(f"{place}/g", f"{place}/k", move=False)
    assert found.checksum(f"{place}/k") == "9dd4e461268c8034f5c8564e155c67a6"
    assert sorted(name for name, _ in found.changed(place)) == ["g", "k"]
    assert (found.files_of(f"{place}/k"), found.files_of(f"{place}/none")) == ([f"{place}/k"], [])
    found.delete(f"{place}/k")
    assert found.moves_in_one_step(f"{place}/g", f"{place}/h")
    found.copy(f"{place}/a", f"{place}/c", lambda: None)
    found.delete(f"{place}/a")
    found.delete_children(f"{place}/c")
    assert found.children(place) == ["b", "c", "g"]
    with pytest.raises(FileNotFoundError):
        found.read(f"{place}/none")

    def own_timeout():
        raise TimeoutError("its own")
    with pytest.raises(TimeoutError, match="its own"):
        found.pool.ask(place, own_timeout)


def test_a_question_is_given_up_and_the_host_is_left_alone_until_something_ends_there(silent):
    bounded = files()
    with pytest.raises(NoAnswerFromFilesError, match=r"hdfs://silent did not answer within 0.05 s"):
        bounded.exists(SILENT)
    bounded.pool.timeout_s = 20
    bounded.pool._hosts["hdfs://silent"].silent_until += 20
    with pytest.raises(NoAnswerFromFilesError, match="hdfs://silent does not answer; nothing was done"):
        bounded.listing(SILENT)
    assert bounded.exists(OTHER)
    silent.answer()
    while "hdfs://silent" in bounded.pool._hosts:
        threading.Event().wait(0.001)
    assert bounded.exists(SILENT)


def test_whatever_ends_at_a_silent_host_shows_that_it_answers():
    pool, hang = FilePool(8, 0.05), [threading.Event(), threading.Event()]
    for event in hang:
        with pytest.raises(NoAnswerFromFilesError, match="did not answer"):
            pool.ask("hdfs://silent/x", event.wait)
        pool._hosts["hdfs://silent"].silent_until = 0.0  # the second is asked all the same
    pool._hosts["hdfs://silent"].silent_until, pool.timeout_s = math.inf, 60
    hang[0].set()
    until(lambda: pool._running == 1)
    assert pool.ask("hdfs://silent/x", lambda: "an answer") == "an answer"
    hang[1].set()


def test_a_removal_is_not_cut_off_and_waits_beside_its_place(silent):
    """The caller's place is free while it removes, and it has a place again when it goes on."""
    places = []

    @contextmanager
    def aside():
        places.append("left")
        yield
        places.append("taken")

    bounded = BoundedFiles(pool=FilePool(4, 0.01, aside), schemes=("hdfs",))
    removal = threading.Thread(target=bounded.delete, args=[SILENT], daemon=True)
    removal.start()
    assert silent.asked.acquire(timeout=60)
    removal.join(0.05)  # beyond its time-out
    assert removal.is_alive()
    assert places == ["left"]
    silent.answer()
    removal.join(60)
    assert places == ["left", "taken"]
    assert not bounded.pool._hosts


def test_a_compaction_loop_gives_up_removals(silent):
    bounded = files(timeout_s=0.001, gives_up_removals=True)
    with pytest.raises(NoAnswerFromFilesError, match=r"did not answer within 0.06 s"):
        bounded.delete(SILENT)


def test_half_of_the_threads_may_wait_for_one_host_and_all_for_several(silent, monkeypatch):
    monkeypatch.setattr("metastore.file_work._STILL_S", 0.01)
    bounded = files(threads=4, timeout_s=600)
    for host in "ab":
        for _ in range(2):
            threading.Thread(target=bounded.exists, args=[f"hdfs://{host}/x"], daemon=True).start()
            assert silent.asked.acquire(timeout=60)
            if host == "a":
                assert bounded.exists(OTHER)
        with pytest.raises(NoAnswerFromFilesError, match=r"most of them for hdfs://[ab], which does not answer"):
            bounded.exists(f"hdfs://{host}/x")
    for host in ("a", ANSWERS):
        with pytest.raises(NoAnswerFromFilesError, match=r"most of them for hdfs://[ab], which does not answer"):
            bounded.exists(f"hdfs://{host}/x")
    silent.answer()
    while bounded.pool._running:
        threading.Event().wait(0.001)
    assert bounded.exists(OTHER)
    assert bounded.pool._threads <= 4


def test_many_at_a_time_wait_for_their_turn(monkeypatch):
    """What is busy and goes on is not refused."""
    monkeypatch.setattr("metastore.file_work._STILL_S", 60)
    pool, ended = FilePool(2, 600), []
    threads = [threading.Thread(target=lambda: ended.append(pool.ask("/x", lambda: 1))) for _ in range(50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert ended == [1] * 50


@pytest.mark.parametrize("uri", ["http://h/x", "memory://x", "C:/x"])
def test_only_listed_schemes_are_opened(uri):
    for use in (files().exists, files().delete, files().mkdirs, lambda uri: files().rename("/x", uri)):
        with pytest.raises(OSError, match=r"is not one of metastore\.warehouse\.schemes \(file, hdfs\)"):
            use(uri)


def test_many_directories_of_a_host_are_few_questions(tmp_path, monkeypatch):
    questions = []
    ask = FilePool.ask
    monkeypatch.setattr(FilePool, "ask", lambda self, uri, question, times=1: (
        None if self._is_inside() else questions.append(uri), ask(self, uri, question, times))[1])
    found, place = files(timeout_s=20), tmp_path.as_uri()
    (tmp_path / "3").mkdir()
    uris = [f"{place}/{n}" for n in range(AT_ONCE + 10)]

    made = found.make_all(uris)

    assert made == Made([uri for uri in uris if not uri.endswith("/3")])
    assert questions == [uris[0], uris[AT_ONCE]]
    assert sorted(found.children(place)) == sorted(str(n) for n in range(AT_ONCE + 10))


def test_what_cannot_be_made_ends_it_and_says_what_is_new(tmp_path):
    found, place = files(timeout_s=20), tmp_path.as_uri()
    (tmp_path / "a_file").write_text("")
    made = found.make_all([f"{place}/a", f"{place}/b", f"{place}/a_file/c", f"{place}/d"])

    assert (made.new, made.failed) == ([f"{place}/a", f"{place}/b"], f"{place}/a_file/c")
    assert isinstance(made.error, NotADirectoryError)
    assert not (tmp_path / "d").exists()


def test_a_silent_host_ends_the_making_of_directories(silent, tmp_path):
    made = files().make_all([f"{tmp_path.as_uri()}/a", SILENT, f"{tmp_path.as_uri()}/b"])

    assert (made.new, made.failed) == ([f"{tmp_path.as_uri()}/a"], SILENT)
    assert isinstance(made.error, NoAnswerFromFilesError)
    silent.answer()


@pytest.mark.parametrize("scheme", ["nfs", "memory"])
def test_a_scheme_that_is_not_opened_ends_it_as_well(tmp_path, scheme):
    made = files(timeout_s=20).make_all([f"{tmp_path.as_uri()}/a", f"{scheme}://h/b"])

    assert (made.new, made.failed) == ([f"{tmp_path.as_uri()}/a"], f"{scheme}://h/b")
    assert "is not one of metastore.warehouse.schemes" in str(made.error)
