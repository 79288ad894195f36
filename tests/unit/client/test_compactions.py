"""Waiting for a compaction."""

from types import SimpleNamespace

import pytest

from metastore.client import compactions
from metastore.client.compactions import compaction_type
from metastore.errors import InvalidInputError, NoSuchObjectError
from metastore.ids import TableName
from metastore.thrift_gen.hive_metastore import ttypes

REQUEST = ttypes.CompactionRequest(dbname="d", tablename="t", type=ttypes.CompactionType.MAJOR)


def row(number, state):
    return ttypes.ShowCompactResponseElement(dbname="d", tablename="t", type=2, state=state, id=number)


class Server:
    """Shows the next of these answers at each look."""

    types = ttypes

    def __init__(self, *answers):
        self.answers, self.asked = list(answers), []

    def show_compact(self, request):
        self.asked.append((request.dbName, request.tbName, request.partName, request.limit))
        return SimpleNamespace(compacts=self.answers.pop(0))


def test_it_waits_until_all_partitions_are_done(monkeypatch):
    monkeypatch.setattr(compactions, "_FIRST_PAUSE_S", 0)
    seen = []
    server = Server([row(8, "working"), row(7, "initiated"), row(3, "working")],
                    [row(7, "working"), row(8, "failed")],
                    [row(7, "ready for cleaning"), row(8, "failed")])

    rows = compactions.wait_until_done(server, REQUEST, 7, lambda found: seen.append([one.state for one in found]))

    assert [(one.id, one.state) for one in rows] == [(7, "ready for cleaning"), (8, "failed")]
    assert seen == [["initiated", "working"], ["working", "failed"], ["ready for cleaning", "failed"]]
    assert set(server.asked) == {("d", "t", None, -1)}


def test_who_waits_is_told_of_each_state_and_that_no_worker_comes(monkeypatch):
    now, said = [0.0], []
    monkeypatch.setattr(compactions, "monotonic", lambda: now[0])
    progress = compactions.Progress(said.append)
    waiting, failed = row(7, "initiated"), row(7, "failed")
    waiting.partitionname, failed.errorMessage = "p=1", "no space left"

    progress.note([waiting])
    assert said == ["Compaction 7 of d.t/p=1 is initiated."]
    now[0] = compactions.UNTAKEN_S + 1
    progress.note([waiting])
    progress.note([waiting])
    progress.note([failed])
    assert [text.partition(" has taken")[0] for text in said[1:]] == [
        "No Worker of pool default", "Compaction 7 of d.t is failed: no space left."]


def test_who_waits_is_told_how_far_the_job_is():
    said = []
    progress = compactions.Progress(said.append)
    for meta_info in (None, "10 %", "10 %", "40 %"):
        working = row(7, "working")
        working.metaInfo, working.hadoopJobId = meta_info, "app-1"
        progress.note([working])

    assert said == ["Compaction 7 of d.t is working.", "Compaction 7, job app-1: 10 %.", "Compaction 7, job app-1: 40 %."]


@pytest.mark.parametrize("state", ["refused", "aborted", "failed", "succeeded"])
def test_whatever_is_no_work_any_more_ends_it(state):
    """COMP-Q31."""
    assert [one.state for one in compactions.wait_until_done(Server([row(1, state)]), REQUEST, 1)] == [state]


def test_of_a_table_that_is_gone_nobody_hears_that_it_was_compacted(monkeypatch):
    monkeypatch.setattr(compactions, "_FIRST_PAUSE_S", 0)
    with pytest.raises(NoSuchObjectError, match=r"Compaction 7 of d\.t is not there any more: the table was dropped"):
        compactions.wait_until_done(Server([row(7, "initiated")], [row(3, "succeeded")]), REQUEST, 7)


def test_a_kind_of_compaction_is_a_word_whatever_its_case():
    """COMP-Q30."""
    assert [compaction_type(word) for word in ("minor", "MAJOR", "Rebalance")] == [1, 2, 3]
    with pytest.raises(InvalidInputError, match="'medium' is not a kind of compaction: the kinds are 'minor'"):
        compaction_type("medium")


@pytest.mark.parametrize(("state", "began", "cleaned"), [
    ("succeeded", None, {"": 7}),           # of a server that notes no beginning
    ("succeeded", 1, {"": 7}), ("failed", 1, {"": 7}), ("ready for cleaning", 1, {"": 7}),
    ("failed", None, {}), ("ready for cleaning", 0, {}), ("working", None, {}), ("refused", None, {})])
def test_files_are_gone_where_a_cleaner_has_begun_or_has_ended_well(state, began, cleaned):
    shown = row(3, state)
    shown.hightestWriteId, shown.cleanerStart = 7, began
    assert compactions.cleaned_write_ids(Server([shown]), TableName("hive", "d", "t")) == cleaned
