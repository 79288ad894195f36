"""Each finding at its threshold, and none of an installation that is well."""

from datetime import timedelta

import pytest

from metastore.doctor.rules import CHECKS, Facts, OldTxn, Queue, Severity, TableState, WaitingLock, findings, shown

SECOND, HOUR, DAY = timedelta(seconds=1), timedelta(hours=1), timedelta(days=1)
WELL = Facts(
    version=150_004, settings={"fsync": "on", "full_page_writes": "on", "autovacuum": "on"}, connections=79, most_connections=100,
    commit=timedelta(milliseconds=19), clock=timedelta(seconds=4), late_replicas=[("standby", 29 * SECOND)],
    dead_rows=[TableState("txns", 499_999)], long_snapshot=(1, "psql", timedelta(minutes=59)), led=frozenset({"reaper", "initiator", "cleaner", "x"}),
    schema="0044", release_schema="0044", oldest_txn=OldTxn(7, "ann", "h1", timedelta(hours=23), SECOND),
    waiting=WaitingLock(3, "sales.orders", timedelta(minutes=9)),
    queue=[Queue("initiated", 3, timedelta(minutes=59)), Queue("working", 1, 9 * DAY), Queue("ready for cleaning", 2, 23 * HOUR)],
    failed_compactions=[], many_deltas=[TableState("sales.orders", 99)], exposed="", unwritable={}, planner="")


def test_an_installation_that_is_well():
    assert findings(WELL) == []
    assert findings(WELL._replace(long_snapshot=None, oldest_txn=None, waiting=None, queue=[], dead_rows=[], late_replicas=[])) == []


@pytest.mark.parametrize(("changed", "severity", "what", "remedy"), [
    ({"settings": {"fsync": "off"}}, Severity.WRONG, "fsync=off", "ALTER SYSTEM SET fsync = on"),
    ({"settings": {"full_page_writes": "off"}}, Severity.WRONG, "full_page_writes=off", "ALTER SYSTEM"),
    ({"schema": ""}, Severity.WRONG, "schema none, this release 0044", "metastore db upgrade"),
    ({"led": frozenset({"reaper"})}, Severity.WRONG, "No process runs initiator, cleaner", "metastore serve"),
    ({"unwritable": {"file:/w": "no"}}, Severity.WRONG, "file:/w cannot be written: no", "right to write"),
    ({"planner": "gone"}, Severity.WRONG, "planner does not answer: gone", "metastore.planner.uri"),
    ({"waiting": WaitingLock(3, "sales.orders", timedelta(minutes=10))}, Severity.WRONG, "Lock 3 on sales.orders has waited for 10 min", "metastore lock why 3"),
    ({"exposed": "Open to whoever"}, Severity.WARNING, "Open to whoever", "who-is-it.md"),
    ({"queue": [Queue("initiated", 3, HOUR)]}, Severity.WARNING, "3 compactions are initiated, the oldest for 60 min", "show compactions"),
    ({"queue": [Queue("ready for cleaning", 2, DAY)]}, Severity.WARNING, "2 compactions are ready for cleaning", "compaction explain"),
    ({"failed_compactions": [TableState("sales.orders/d=1", 2)]}, Severity.WARNING, "2 compactions of sales.orders/d=1", "explain sales.orders"),
    ({"many_deltas": [TableState("sales.orders/d=1", 100)]}, Severity.WARNING, "has 100 deltas", "explain sales.orders"),
    ({"oldest_txn": OldTxn(7, "ann", "h1", DAY, SECOND)}, Severity.WARNING, "Transaction 7 of ann on h1 is open for 24 h", "txn explain 7"),
    ({"long_snapshot": (9, "", HOUR)}, Severity.WARNING, "an unnamed client (process 9)", "pg_terminate_backend(9)"),
    ({"dead_rows": [TableState("locks", 500_000)]}, Severity.WARNING, "locks has 500,000 dead rows", "VACUUM locks"),
    ({"settings": {"autovacuum": "off"}}, Severity.WARNING, "autovacuum is off", "autovacuum = on"),
    ({"version": 120_022}, Severity.WARNING, "PostgreSQL 12 is older", "13"),
    ({"connections": 80}, Severity.WARNING, "80 of PostgreSQL's 100 connections", "max_connections"),
    ({"commit": timedelta(milliseconds=20)}, Severity.WARNING, "takes 20 ms", "pg_test_fsync"),
    ({"late_replicas": [("standby", 30 * SECOND)]}, Severity.WARNING, "standby is 30 s behind", "pg_stat_replication"),
    ({"clock": -timedelta(seconds=5)}, Severity.WARNING, "are 5 s apart", "chronyc"),
])
def test_each_finding(changed, severity, what, remedy):
    [finding] = findings(WELL._replace(**changed))
    assert finding.severity is severity
    assert what in finding.what
    assert remedy in finding.remedy
    assert finding.why.endswith(".")


def test_what_is_wrong_comes_first():
    ill = WELL._replace(settings={"fsync": "off", "autovacuum": "off"}, commit=SECOND, planner="gone", exposed="open", clock=DAY, schema="1")
    order = [finding.severity for finding in findings(ill)]
    assert order == sorted(order, key=[Severity.WRONG, Severity.WARNING].index)
    assert len(CHECKS) == len(set(CHECKS))


@pytest.mark.parametrize(("age", "text"), [(3 * DAY, "3 d"), (47 * HOUR, "47 h"), (timedelta(minutes=119), "119 min"), (90 * SECOND, "90 s"),
                                           (timedelta(milliseconds=1900), "1900 ms")])
def test_ages(age, text):
    assert shown(age) == text
