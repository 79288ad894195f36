"""The command on a database with what is wrong in it, and its exit codes."""

import json
from datetime import timedelta

import pytest
from click.testing import CliRunner

from metastore.cli.main import cli
from metastore.db import leader
from metastore.doctor import store
from metastore.doctor.rules import LEADERS
from metastore.loops.compaction_loops import compaction_loops


def doctor(url, tmp_path, *options):
    done = CliRunner().invoke(cli, ["doctor", "--database-url", url, "--set", f"hive.metastore.warehouse.dir={tmp_path.as_uri()}", "-o", "json", *options])
    return done.exit_code, json.loads(done.output)


@pytest.fixture
def led(database_url):
    """Somebody has each role."""
    having = leader.Leadership(database_url)
    assert all(having.is_leader(role) for role in LEADERS)
    yield
    having.release()


def test_what_is_wrong(database, database_url, tmp_path, led):
    code, found = doctor(database_url, tmp_path)
    # The tests' PostgreSQL waits for no disk.
    assert [finding["what"] for finding in found] == ["PostgreSQL runs with fsync=off", "PostgreSQL runs with full_page_writes=off", "PostgreSQL's autovacuum is off"]
    assert code == 2

    database.once("""
        INSERT INTO txns (id, state, "user", host, started_at, last_heartbeat_at) VALUES
            (5, 'open', 'ann', 'h1', now() - interval '3 days', now()), (6, 'open', 'bob', 'h2', now(), now());
        INSERT INTO locks (ext_id, int_id, txn_id, catalog, db, "table", type, state, requested_at, "user", host) VALUES
            (8, 1, 6, 'hive', 'sales', 'orders', 'exclusive', 'waiting', now() - interval '1 hour', 'bob', 'h2');
        INSERT INTO compaction_queue (catalog, db, "table", state, type, enqueued_at) VALUES
            ('hive', 'sales', 'orders', 'initiated', 'major', now() - interval '2 hours');
        INSERT INTO completed_compactions (id, catalog, db, "table", partition, state, type, enqueued_at, ended_at) VALUES
            (1, 'hive', 'sales', 'orders', 'd=1', 'failed', 'major', now(), now()), (2, 'hive', 'sales', 'old', '', 'failed', 'major', now(), now() - interval '2 days');
        INSERT INTO delta_measures (catalog, db, "table", deltas, at) VALUES ('hive', 'sales', 'orders', 120, now())""")
    _, found = doctor(database_url, tmp_path)
    said = " | ".join(finding["what"] for finding in found)
    for what in ("Lock 8 on sales.orders has waited for 60 min", "1 compactions are initiated, the oldest for 2 h", "1 compactions of sales.orders/d=1 have failed",
                 "sales.orders has 120 deltas", "Transaction 5 of ann on h1 is open for 3 d"):
        assert what in said
    assert "sales.old" not in said


def test_nobody_runs_the_loops(database_url, tmp_path):
    _, found = doctor(database_url, tmp_path)
    assert any(finding["what"] == "No process runs reaper, initiator, cleaner" for finding in found)


def test_what_is_beside_the_database(database_url, tmp_path, led):
    _, found = doctor(database_url, tmp_path, "--set", "metastore.planner.uri=http://127.0.0.1:1", "--set", "hive.metastore.thrift.bind.host=0.0.0.0")
    said = " | ".join(finding["what"] for finding in found)
    assert "The planner does not answer: http://127.0.0.1:1" in said
    assert "Listening on 0.0.0.0 would open this metastore to the network" in said


def test_a_schema_of_another_release(database, database_url, tmp_path, led):
    database.once("UPDATE alembic_version SET version_num = '0043'")
    _, found = doctor(database_url, tmp_path)
    assert found[2]["remedy"] == "metastore db upgrade"


def test_roles_are_loops(database):
    """Each role that is looked for is a loop's name: a renamed loop would be missed for ever."""
    source = compaction_loops.__code__.co_consts
    assert {"initiator", "cleaner"} <= {name for name in source if isinstance(name, str)}
    assert store.time_of_commit(database) < timedelta(seconds=5)


def test_people_read_sentences(database_url, tmp_path, led):
    done = CliRunner().invoke(cli, ["doctor", "--database-url", database_url, "--set", f"hive.metastore.warehouse.dir={tmp_path.as_uri()}"])
    assert done.output.splitlines()[:3] == ["wrong: PostgreSQL runs with fsync=off", "  why:  A crash of its machine loses or damages what clients were told is stored.",
                                            "  then: ALTER SYSTEM SET fsync = on; SELECT pg_reload_conf()"]
