"""Tables on a host that does not answer hold up no round for the others."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from metastore.catalog.service.moves import DirectoryMoves
from metastore.catalog.store.directory_changes import LEASE
from metastore.file_work import BoundedFiles, FilePool
from metastore.files import Files
from tests.support.silent_files import silent_files
from tests.support.thrift_server import until

SILENT = "hdfs://10.255.255.1:8020"
SCHEMES = ("file", "hdfs")


class Pool(FilePool):
    """Patient with all hosts but the silent one."""

    def ask(self, uri, question, times=1):
        self.timeout_s = 0.1 if uri.startswith(SILENT) else 60
        return super().ask(uri, question, times)


@pytest.fixture
def silent():
    with silent_files() as found:
        yield found


@pytest.fixture
def lakes(new_lake, silent):
    """Three tables, of which the one in the middle cannot be looked at."""
    lake = new_lake(aborted_txn_threshold=0)
    lake.files = BoundedFiles(pool=Pool(8, 60), schemes=SCHEMES)
    lake.table("a")
    lake.table("b", location=f"{SILENT}/b")
    lake.table("c")
    return lake


def test_the_initiator_goes_on(lakes):
    for name in "abc":
        lakes.insert(f"d.{name}", times=11)
    report = lakes.initiator().tick()
    assert [str(one.entity) for one in report.queued] == ["d.a", "d.c"]
    [failed] = [one.error_message for one in lakes.shown() if one.state == "did_not_initiate"]
    assert f"{SILENT} did not answer within 0.1 s" in failed


def test_the_cleaner_goes_on(lakes):
    for name in "abc":
        lakes.abort(f"d.{name}")
    outcomes = {str(one.entity): one.outcome.value for one in lakes.cleaner().tick()}
    assert outcomes == {"d.a": "cleaned", "d.b": "failed", "d.c": "cleaned"}
    assert lakes.directories("d.a") == lakes.directories("d.c") == []


def test_what_is_left_to_remove_elsewhere_goes(database, tmp_path, silent, test_clock):
    left = tmp_path / "left"
    left.mkdir()
    with database.begin() as pg:
        DirectoryMoves(database, Files()).announce_removals(pg, 1, [f"{SILENT}/gone", f"file:{left}"])
    test_clock.advance(2 * LEASE)
    replica = DirectoryMoves(database, Files(), patience_s=1)
    with ThreadPoolExecutor(1) as loop:
        try:
            assert loop.submit(replica.settle_moves).result(60) == 2
            until(lambda: not left.exists())
            assert silent.asked.acquire(timeout=60)
            assert replica.settling == {SILENT}
        finally:
            silent.answer()
    until(lambda: not replica.settling)
