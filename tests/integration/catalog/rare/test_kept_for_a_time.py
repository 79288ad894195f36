"""Statistics of runs (CAT-R3), metrics of replications (CAT-R4), marks of partitions (CAT-R6), as Hive 4.2.0 answers, and their end."""

from datetime import timedelta

import pytest
from thrift.Thrift import TApplicationException

from metastore.catalog.rare.service import RareReport, RareService
from metastore.config import RareSettings
from metastore.thrift_gen.hive_metastore import ttypes as T

DONE = T.PartitionEventType.LOAD_DONE


@pytest.fixture
def runs(hive, test_clock):
    for weight in (1, 2, 3):
        hive.add_runtime_stats(T.RuntimeStat(5, weight, b"\x00%d" % weight))
        test_clock.advance(timedelta(seconds=2))

    def found(weight, before=-1):
        return hive.get_runtime_stats(T.GetRuntimeStatsRequest(weight, before))

    return found


def weights(statistics):
    return [one.weight for one in statistics]


def test_statistics_come_from_the_newest_until_their_weight_is_reached(runs):  # CAT-282
    assert weights(first := runs(3)) == [3]
    assert weights(second := runs(3, first[-1].createTime)) == [2, 1]
    assert runs(3, second[-1].createTime) == []
    assert [weights(runs(most)) for most in (-1, 0, 1, 4, 100)] == [[3, 2, 1], [3], [3], [3, 2], [3, 2, 1]]
    assert weights(runs(-1, 0)) == [3, 2, 1]
    assert first[0].payload == b"\x003"
    assert first[0].createTime > 1_000_000_000  # the client's 5 is not kept


def metrics(id_, policy="Pol", dump=1, *texts):
    return T.ReplicationMetrics(id_, policy, dump, *texts)


@pytest.fixture
def replications(hive):
    hive.add_replication_metrics(T.ReplicationMetricList([
        metrics(101, "Pol", 1, "meta", "prog", "json"), metrics(9, "Pol", 3), metrics(102, "Pol", 2, "m2"), metrics(104, "", 0, "", "y")]))
    return hive


def asked(hive, **fields):
    return hive.get_replication_metrics(T.GetReplicationMetricsRequest(**fields)).replicationMetricList


def test_metrics_of_an_execution_keep_what_is_not_sent_again(replications):
    replications.add_replication_metrics(T.ReplicationMetricList([metrics(101, "Other", 7, None, "prog2")]))
    assert asked(replications, scheduledExecutionId=101) == [metrics(101, "Pol", 1, "meta", "prog2")]
    replications.add_replication_metrics(T.ReplicationMetricList([metrics(101, "x", 7, "", "", "gzip"), metrics(101, "x", 7, "new")]))
    assert asked(replications, scheduledExecutionId=101) == [metrics(101, "Pol", 1, "new", "prog2")]


def test_metrics_of_a_policy_come_from_the_newest(replications):
    assert [one.scheduledExecutionId for one in asked(replications, policy="Pol")] == [102, 101, 9]
    assert asked(replications, policy="Pol", dumpExecutionId=2) == asked(replications, policy="Pol", scheduledExecutionId=9)
    assert asked(replications, policy="") == [metrics(104, "", 0, None, "y")]
    assert [asked(replications, **none) for none in ({"policy": "pol"}, {"scheduledExecutionId": 7}, {"scheduledExecutionId": 9, "policy": "x"})] == [[]] * 3
    for nothing in ({}, {"dumpExecutionId": 1}):
        with pytest.raises(TApplicationException) as refused:
            asked(replications, **nothing)
        assert refused.value.type == TApplicationException.MISSING_RESULT


@pytest.fixture
def marks(d):
    d.create("parts", keys="y:string m:string")
    d.create("plain")
    return d


def test_a_mark_is_of_values_in_any_order_whether_there_is_a_partition_or_not(marks):  # CAT-289
    values = {"y": "a/b=c", "m": ""}
    assert not marks.isPartitionMarkedForEvent("d", "parts", values, DONE)
    marks.markPartitionForEvent("d", "parts", values, DONE)
    marks.markPartitionForEvent("D", "PARTS", values, DONE)
    marks.markPartitionForEvent("@hive#d", "plain", {}, DONE)
    assert marks.isPartitionMarkedForEvent("@hive#D", "Parts", {"m": "", "y": "a/b=c"}, DONE)
    assert marks.isPartitionMarkedForEvent("d", "plain", {}, DONE)
    assert not marks.isPartitionMarkedForEvent("d", "parts", {"y": "", "m": "a/b=c"}, DONE)
    marks.drop_table("d", "parts", False)
    marks.create("parts", keys="y:string m:string")
    assert marks.isPartitionMarkedForEvent("d", "parts", values, DONE)


@pytest.mark.parametrize(("wrong", "error"), [
    (("d", "nosuch", {"y": "1"}, DONE), T.UnknownTableException), (("nosuch", "parts", {"y": "1"}, DONE), T.UnknownTableException),
    (("@other#d", "parts", {"y": "1", "m": "2"}, DONE), T.UnknownTableException), (("", "parts", {}, DONE), T.UnknownTableException),
    (("d", "parts", {"y": "1"}, DONE), T.InvalidPartitionException), (("d", "parts", {}, DONE), T.InvalidPartitionException),
    (("d", "parts", {"Y": "1", "M": "2"}, DONE), T.InvalidPartitionException), (("d", "plain", {"a": "b"}, DONE), T.InvalidPartitionException),
    (("d", "parts", {"y": "1", "m": "2", "z": "3"}, DONE), T.InvalidPartitionException), (("d", "parts", None, DONE), T.MetaException),
    ((None, "parts", {}, DONE), T.MetaException), (("d", None, {}, DONE), T.MetaException), (("d", "parts", {"y": "1", "m": "2"}, None), T.MetaException)])
def test_a_wrong_mark_is_refused(marks, wrong, error):
    for call in (marks.markPartitionForEvent, marks.isPartitionMarkedForEvent):
        with pytest.raises(error):
            call(*wrong)


def test_each_kind_goes_after_its_time(runs, replications, marks, database, test_clock):
    rare = RareService(database, RareSettings(partition_marks_age=timedelta(hours=1)))
    marks.markPartitionForEvent("d", "plain", {}, DONE)
    assert rare.purge() == RareReport()
    test_clock.advance(timedelta(hours=2))
    assert RareService(database, RareSettings()).purge() == RareReport()  # marks stay where no time is set
    assert rare.purge() == RareReport(partition_marks=1)
    assert not marks.isPartitionMarkedForEvent("d", "plain", {}, DONE)
    test_clock.advance(timedelta(days=2, hours=23))
    replications.add_replication_metrics(T.ReplicationMetricList([metrics(9, "Pol", 3, "again")]))
    assert rare.purge() == RareReport(runtime_statistics=3)
    test_clock.advance(timedelta(days=5))
    assert rare.purge() == RareReport(replication_metrics=3)
    assert (runs(-1), [one.scheduledExecutionId for one in asked(replications, policy="Pol")]) == ([], [9])
