"""``metastore db backup`` and ``restore``: whole or absent, and no id that anybody knows comes back."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from contextlib import closing, contextmanager
from pathlib import Path

import psycopg2
import pyorc
import pytest

from metastore.acid.bucket import encode
from metastore.acid.violations import LayoutRule
from metastore.app import App
from metastore.cli.main import main
from metastore.client.domain_client import DomainClient
from metastore.config.settings import SettingsSource, build
from metastore.db import backup, migrate
from metastore.db.engine import Database
from metastore.files import Files
from metastore.housekeeping.service import PurgeService
from metastore.ids import table_name
from metastore.spark.check import table_check
from tests.support import how_to
from tests.support.able import AbleClient

_EVENT = ("struct<operation:int,originalTransaction:bigint,bucket:int,rowId:bigint,currentTransaction:bigint,"
          "row:struct<a:int>>")


@pytest.fixture
def run(capsys):
    """Run a command line in this process; (exit code, stdout, stderr)."""
    def ran(*arguments):
        capsys.readouterr()
        with pytest.raises(SystemExit) as end:
            main(list(arguments))
            raise SystemExit(0)
        printed = capsys.readouterr()
        return end.value.code or 0, printed.out, printed.err
    return ran


@contextmanager
def served(url, tmp_path):
    """Run a server over a database, with the warehouse of this test, and yield its client."""
    app = App(build([SettingsSource("test", {
        "metastore.database.url": url, "hive.metastore.port": "0", "metastore.http.port": "0",
        "hive.metastore.warehouse.dir": (tmp_path / "warehouse").as_uri(), "metastore.lock.check.wait": "0"})]), loops=False)
    app.start()
    try:
        with AbleClient(app.thrift_uri) as client:
            yield client
    finally:
        app.stop()


def rows(url, query):
    with closing(psycopg2.connect(url)) as session, session.cursor() as cursor:
        cursor.execute(query)
        return cursor.fetchall()


def everything(url):
    """Return the rows of all tables, keyed by table, but for ``txn_id_block``."""
    return {name: sorted(rows(url, f'SELECT t::text FROM "{name}" AS t')) for name in sorted(migrate.table_names())
            if name != "txn_id_block"}


def created(client, name):
    """Create a transactional table, and return its place."""
    types = client.types
    client.create_table(types.Table(
        tableName=name, dbName="default", owner="ann", tableType="MANAGED_TABLE", parameters={"transactional": "true"},
        partitionKeys=[], sd=types.StorageDescriptor(
            cols=[types.FieldSchema("a", "int")], inputFormat="org.apache.hadoop.hive.ql.io.orc.OrcInputFormat",
            outputFormat="org.apache.hadoop.hive.ql.io.orc.OrcOutputFormat",
            serdeInfo=types.SerDeInfo(serializationLib="org.apache.hadoop.hive.ql.io.orc.OrcSerde"))))
    return Path(client.get_table("default", name).sd.location.removeprefix("file:").replace("///", "/"))


def write(client, name, place, *, commit=True, partition=None):
    """One transaction with one row; (transaction, write id)."""
    types = client.types
    [txn_id] = client.open_txns(types.OpenTxnRequest(num_txns=1, user="ann", hostname="here")).txn_ids
    lock(client, name, txn_id, types.LockType.SHARED_WRITE)
    [given] = client.allocate_table_write_ids(types.AllocateTableWriteIdsRequest(
        dbName="default", tableName=name, txnIds=[txn_id])).txnToWriteIds
    delta(place, given.writeId)
    if commit:
        client.commit_txn(types.CommitTxnRequest(txnid=txn_id))
    return txn_id, given.writeId


def delta(place, write_id, name="delta_{0:07d}_{0:07d}_0000"):
    path = place / name.format(write_id)
    path.mkdir(parents=True)
    with (path / "bucket_00000").open("wb") as out, pyorc.Writer(out, _EVENT) as writer:
        writer.write((0, write_id, encode(0), 0, write_id, (write_id,)))
        writer.set_user_metadata(**{"hive.acid.key.index": f"{write_id},{encode(0)},0;".encode(),
                                    "hive.acid.stats": b"1,0,0", "hive.acid.version": b"2"})
    (path / "_orc_acid_version").write_text("2")


def readable(client, name, place):
    """Return the write ids of the deltas that a reader who begins now would read."""
    types = client.types
    [valid] = client.get_valid_write_ids(types.GetValidWriteIdsRequest(fullTableNames=[f"default.{name}"])).tblValidWriteIds
    there = {int(path.name.split("_")[1]) for path in place.glob("delta_*")}
    return sorted(write_id for write_id in there
                  if write_id <= valid.writeIdHighWaterMark and write_id not in valid.invalidWriteIds)


def lock(client, table=None, txn_id=0, kind=None):
    types = client.types
    component = types.LockComponent(
        type=types.LockType.SHARED_READ if kind is None else kind, dbname="default", tablename=table,
        level=types.LockLevel.TABLE if table else types.LockLevel.DB, operationType=types.DataOperationType.INSERT if table else None,
        isTransactional=table is not None)
    return client.lock(types.LockRequest(component=[component], txnid=txn_id, user="ann", hostname="here")).lockid


def findings(client, name):
    with DomainClient(client.uri) as domain:
        return [(one.finding.rule, one.finding.path) for one in table_check.check_table(domain, Files(), table_name("default", name))]


@pytest.fixture
def two(postgres):
    """URLs of a database for the time before and of one for what is restored."""
    with postgres.empty() as url, postgres.empty() as other:
        yield url, other


def test_nothing_that_anybody_saw_comes_back(run, two, tmp_path):
    url, other = two
    saved = tmp_path / "one.backup"
    with served(url, tmp_path) as client:
        place = created(client, "t")
        before = [write(client, "t", place)[1] for _ in range(3)]
        open_txn, open_id = write(client, "t", place, commit=False)
        assert run("db", "backup", str(saved), "--database-url", url)[0] == 0
        lost = [write(client, "t", place) for _ in range(3)]
        client.commit_txn(client.types.CommitTxnRequest(txnid=open_txn))
        write(client, "later", created(client, "later"))
        last_lock = lock(client)
        assert readable(client, "t", place) == [*before, open_id, *(write_id for _, write_id in lost)]
    void = [f"delta_{one:07d}_{one:07d}_0000" for one in (open_id, *(write_id for _, write_id in lost))]

    code, out, err = run("db", "restore", str(saved), "--database-url", other, "-o", "json")
    told = json.loads(out)

    assert (code, err) == (0, "")
    assert (told["aborted"], told["kept"]) == (4, [])
    assert sorted(Path(path).name for _, _, path in told["hidden"]) == void
    assert [(table, Path(path).name) for table, _, path in told["strange"]] == [("default.later", "delta_0000001_0000001_0000")]
    with served(other, tmp_path) as client:
        types = client.types
        assert readable(client, "t", place) == before
        assert findings(client, "t") == [(LayoutRule.ABORTED_WRITER, name) for name in void]
        for txn_id in (open_txn, *(txn_id for txn_id, _ in lost)):
            with pytest.raises((types.NoSuchTxnException, types.TxnAbortedException)):
                client.commit_txn(types.CommitTxnRequest(txnid=txn_id))
        txn_id, write_id = write(client, "t", place)
        assert txn_id > max(txn_id for txn_id, _ in lost)
        assert write_id > max(write_id for _, write_id in lost)
        assert write(client, "later", created(client, "later"))[1] > 1
        assert lock(client) > last_lock
        assert readable(client, "t", place) == [*before, write_id]
        purges = PurgeService(Database(other), build([SettingsSource("test", {})]).txns)
        while purges.empty_aborted():
            pass
        assert readable(client, "t", place) == [*before, write_id]


def test_the_only_copy_of_committed_rows_stays_readable(run, two, tmp_path):
    """A compaction that the backup does not know, whose sources the Cleaner has removed."""
    url, other = two
    saved = tmp_path / "one.backup"
    with served(url, tmp_path) as client:
        place, whole = created(client, "t"), created(client, "whole")
        for name, where in (("t", place), ("whole", whole)):
            write(client, name, where)
        assert run("db", "backup", str(saved), "--database-url", url)[0] == 0
        delta(place, 1, "base_{0:07d}_v0000900")
        shutil.rmtree(place / "delta_0000001_0000001_0000")
        delta(whole, 1, "base_{0:07d}_v0000901")

    code, out, _ = run("db", "restore", str(saved), "--database-url", other, "-o", "json")

    assert code == 0
    assert [Path(path).name for _, _, path in json.loads(out)["hidden"]] == ["base_0000001_v0000901"]
    with served(other, tmp_path) as client:
        assert findings(client, "t") == []
        assert [rule for rule, _ in findings(client, "whole")] == [LayoutRule.ABORTED_WRITER]
        txns = client.get_open_txns()
        assert 900 not in txns.open_txns
        assert 901 in txns.open_txns
        assert txns.txn_high_water_mark > 901


def test_a_restore_that_is_killed_leaves_what_was_there(run, two, tmp_path):
    url, other = two
    saved = tmp_path / "one.backup"
    with served(url, tmp_path) as client:
        created(client, "t")
        assert run("db", "backup", str(saved), "--database-url", url)[0] == 0
    with served(other, tmp_path) as client:
        created(client, "mine")
    before = everything(other)
    command = [sys.executable, "-m", "metastore", "db", "restore", str(saved), "--replace", "--database-url", other]

    killed = subprocess.run(command, env={**os.environ, "METASTORE_FAILPOINTS": "restore.before_commit=kill"},
                            capture_output=True, text=True, check=False)

    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert everything(other) == before
    assert run(*command[3:])[0] == 0
    assert rows(other, "SELECT name FROM tables") == [("t",)]


def test_a_session_that_ends_is_waited_for(run, two, tmp_path, monkeypatch):
    url, _ = two
    with served(url, tmp_path):
        pass
    monkeypatch.setattr(backup, "_PATIENCE_S", 120)
    answers = []
    with closing(psycopg2.connect(url, application_name="metastore")) as ending:
        waiting = threading.Thread(target=lambda: answers.append(run("db", "restored", "--nothing-lost", "--database-url", url)[0]))
        waiting.start()
        while not rows(url, "SELECT 1 FROM pg_stat_activity WHERE application_name = 'metastore maintenance' AND query ~ 'pg_sleep'"):
            assert waiting.is_alive()
        ending.close()
        waiting.join(120)

    assert answers == [0]


def test_what_is_there_is_not_overwritten_unasked(run, two, tmp_path, monkeypatch):
    url, other = two
    saved = tmp_path / "one.backup"
    with served(url, tmp_path) as client:
        created(client, "t")
        run("db", "backup", str(saved), "--database-url", url)
        with monkeypatch.context() as impatience:
            impatience.setattr(backup, "_PATIENCE_S", 0)
            code, _, told = run("db", "restore", str(saved), "--replace", "--database-url", url)
        assert code == 1
        assert "Metastores are connected to the database: metastore from" in told
        assert "Stop them" in told
    assert run("db", "restore", str(saved), "--database-url", url)[2].endswith("--replace to drop what it holds.\n")
    with closing(psycopg2.connect(other)) as session, session, session.cursor() as cursor:
        cursor.execute("CREATE TABLE somebodys AS SELECT 1")
    assert "what is not a metastore's: somebodys" in run("db", "restore", str(saved), "--replace", "--database-url", other)[2]
    with closing(psycopg2.connect(url)) as session, session, session.cursor() as cursor:
        cursor.execute("CREATE TABLE of_later AS SELECT 1; UPDATE alembic_version SET version_num = '9999'")
    assert re.search("version 9999, made by a newer release, .*: of_later. Restore with the newer release",
                     run("db", "restore", str(saved), "--replace", "--database-url", url)[2])
    assert "is no backup of a metastore" in run("db", "restore", __file__, "--database-url", other)[2]
    code, _, told = run("db", "backup", str(saved), "--database-url", url)
    assert (code, "never written over another file" in told) == (2, True)
    assert "holds no metastore" in run("db", "backup", str(tmp_path / "two"), "--database-url", other)[2]


@pytest.fixture
def saved(run, two, tmp_path):
    """Back up a metastore with a table, and return the path of the backup and the digest that was printed."""
    url, _ = two
    path = tmp_path / "one.backup"
    with served(url, tmp_path) as client:
        created(client, "t")
    _, out, _ = run("db", "backup", str(path), "--database-url", url, "-o", "json")
    return path, json.loads(out)["sha256"]


def test_what_a_backup_says_is_not_run(run, two, tmp_path, saved):
    """A function of the backup's schema is called by its constraint for each row: as a superuser it may start programs."""
    url, other = two
    tampered = tmp_path / "tampered"

    def has_run(forget="cat > /dev/null; rm -f ran"):
        [(stat,)] = rows(other, "SELECT pg_stat_file('ran', true)::text")
        with closing(psycopg2.connect(other)) as session, session.cursor() as cursor:
            cursor.execute(f"COPY (SELECT 1) TO PROGRAM '{forget}'")
        return stat is not None

    with closing(psycopg2.connect(url)) as session, session, session.cursor() as cursor:
        cursor.execute("""CREATE FUNCTION evil() RETURNS boolean LANGUAGE plpgsql AS
            $$BEGIN COPY (SELECT 1) TO PROGRAM 'cat > ran'; RETURN true; END$$;
            ALTER TABLE catalogs ADD CONSTRAINT evil CHECK (evil())""")
    assert has_run()
    assert run("db", "backup", str(tampered), "--database-url", url)[0] == 0

    assert run("db", "restore", str(tampered), "--database-url", other)[0] == 0
    assert not has_run()
    assert rows(other, "SELECT name FROM tables") == [("t",)]
    assert rows(other, "SELECT count(*) FROM pg_constraint WHERE conname = 'evil'") == [(0,)]


CHANGES = [
    (b"SELECT pg_catalog.setval(", b"SELECT evil_schema.evals(", "what is not run"),
    (b"COPY public.txn_counter (", b"SELECT 1 AS run_me ; -- (", "what is not run"),
    (b"COPY public.txn_counter (", b"COPY public.txn_strange (", "does not have"),
    (b"next_txn_id", b"next_txn_xx", "with next_txn_xx"),
    (b"COPY public.locks (", b"COPY public.txns0 (", "does not have"),
    (b"PGDMP", b"PGDNP", "no archive of pg_dump")]


def test_a_backup_that_was_changed_is_refused(run, two, saved):
    path, digest = saved
    whole = path.read_bytes()
    for before, after, why in CHANGES:
        assert before in whole
        assert len(before) == len(after)
        path.write_bytes(whole.replace(before, after))
        code, _, told = run("db", "restore", str(path), "--database-url", two[1])
        assert code != 0
        assert why in told
        assert rows(two[1], "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'") == [(0,)]
        code, _, told = run("db", "restore", str(path), "--database-url", two[1], "--sha256", digest)
        assert (code, "another backup, or was changed" in told) == (2, True)


def test_a_backup_is_its_owners_and_has_a_digest(run, two, saved):
    path, digest = saved
    assert path.stat().st_mode & 0o777 == 0o600
    assert digest == subprocess.run(["sha256sum", path], capture_output=True, text=True, check=True).stdout.split()[0]
    assert run("db", "restore", str(path), "--database-url", two[1], "--sha256", digest.upper())[0] == 0


def test_a_base_backup_is_verified_file_by_file(run, tmp_path):
    """By the manifest, once that is the one whose digest was printed."""
    base, data = tmp_path / "base", tmp_path / "data"
    base.mkdir()
    archive = ("--data-dir", str(data), "--set", f"metastore.database.embedded.archive={tmp_path}")
    assert "has no backup_manifest" in run("db", "restore", str(base), "--sha256", "0" * 64, *archive)[2]
    files = {"PG_VERSION": "18", "base/1/2": "rows", "pg_hba.conf": "local"}
    for name, content in files.items():
        (base / name).parent.mkdir(parents=True, exist_ok=True)
        (base / name).write_text(content)
    (base / "backup_manifest").write_text(json.dumps({"Files": [
        {"Path": name, "Checksum-Algorithm": "SHA256", "Checksum": backup.digest(base / name)} for name in files]}))
    assert "another backup, or was changed" in run("db", "restore", str(base), "--sha256", "0" * 64, *archive)[2]
    right = backup.digest(base)
    backup.require_digest(base, right)
    (base / "pg_wal").mkdir()
    (base / "pg_wal" / "000000010000000000000001").write_text("WAL")
    backup.require_digest(base, right)
    for name, changed in (("pg_hba.conf", lambda path: path.write_text("trust")), ("postgresql.auto.conf", lambda path: path.touch()),
                          ("PG_VERSION", lambda path: path.unlink()), ("base/1/2", lambda path: (path.unlink(), path.symlink_to("/etc/passwd")))):
        kept = (base / name).read_bytes() if (base / name).exists() else None
        changed(base / name)
        assert f"was changed: {name} is not what" in run("db", "restore", str(base), "--sha256", right, *archive)[2]
        (base / name).unlink(missing_ok=True)
        if kept is not None:
            (base / name).write_bytes(kept)
    backup.require_digest(base, right)
    assert not data.exists()


def test_rows_are_copied_into_our_schema_by_a_role_that_may_do_nothing_else(run, two, saved, monkeypatch):
    """Triggers and foreign keys, which are put aside while rows come, are as the migrations make them."""
    url, other = two
    copied, copy = [], backup._copy

    def watched(cursor, *arguments):
        cursor.execute("SELECT current_setting('is_superuser'), rolsuper, rolcanlogin FROM pg_roles WHERE rolname = current_user")
        copied.extend(cursor.fetchall())
        copy(cursor, *arguments)

    monkeypatch.setattr(backup, "_copy", watched)
    assert run("db", "restore", str(saved[0]), "--database-url", other)[0] == 0
    assert copied == [("off", False, False)]
    assert rows(other, "SELECT rolname FROM pg_roles WHERE rolname ~ '^metastore_restore'") == []
    for query in ("SELECT tgrelid::regclass::text, tgname, tgenabled, pg_get_triggerdef(oid) FROM pg_trigger WHERE NOT tgisinternal ORDER BY 1, 2",
                  "SELECT conrelid::regclass::text, conname, convalidated, pg_get_constraintdef(oid) FROM pg_constraint ORDER BY 1, 2",
                  "SELECT indexdef FROM pg_indexes WHERE schemaname = 'public' ORDER BY 1"):
        assert rows(other, query) == rows(url, query)


def test_views_of_hive_show_what_was_restored_over_another_metastore(run, two, saved, tmp_path):
    path, _ = saved
    url, _ = two
    with served(url, tmp_path) as client:
        created(client, "of_later")
    assert run("db", "restore", str(path), "--replace", "--database-url", url)[0] == 0

    with closing(psycopg2.connect(url)) as session, session.cursor() as cursor:
        cursor.execute('SELECT "TBL_NAME" FROM hive."TBLS"')
        assert cursor.fetchall() == [("t",)]


def test_a_backup_of_an_older_release_is_brought_up_to_date(run, two, tmp_path):
    url, other = two
    saved = tmp_path / "one.backup"
    older = min(migrate._migrations())
    with closing(psycopg2.connect(url, connection_factory=migrate.Lendable)) as session:
        migrate.to_revision(session, older)
        session.commit()

    assert run("db", "backup", str(saved), "--database-url", url)[0] == 0
    assert run("db", "restore", str(saved), "--database-url", other)[0] == 0
    assert migrate.versions(other).database == migrate.release_version()

    with closing(psycopg2.connect(url)) as session, session, session.cursor() as cursor:
        cursor.execute("UPDATE alembic_version SET version_num = '0040'")
    saved.unlink()
    assert run("db", "backup", str(saved), "--database-url", url)[0] == 0
    code, _, told = run("db", "restore", str(saved), "--replace", "--database-url", other)
    assert (code, "older than release 0.2" in told) == (1, True)
    assert migrate.versions(other).database == migrate.release_version()


def test_restored_by_other_means(run, two, tmp_path):
    """The step after PostgreSQL's own recovery; repeated, it leaves another gap and nothing else."""
    url, _ = two
    with served(url, tmp_path) as client:
        place = created(client, "t")
        write(client, "t", place)
        delta(place, 2)
    first, second = (json.loads(run("db", "restored", "--database-url", url, "-o", "json")[1]) for _ in range(2))

    assert [Path(path).name for _, _, path in first["hidden"]] == ["delta_0000002_0000002_0000"]
    assert second["hidden"] == []
    assert second["next_txn_id"] > first["next_txn_id"]
    with served(url, tmp_path) as client:
        assert readable(client, "t", place) == [1]


def test_the_embedded_database_while_it_runs(run, tmp_path, postgres):
    migrate.upgrade(postgres.postgres.url)

    assert run("db", "backup", str(tmp_path / "one"), "--data-dir", str(postgres.data_dir))[0] == 0
    assert "There is no PostgreSQL" in run("db", "backup", str(tmp_path / "two"), "--data-dir", str(tmp_path / "none"))[2]


def test_after_a_move_only_the_new_place_is_served(run, two, tmp_path, monkeypatch):
    url, other = two
    move = ("db", "move", "--database-url", url, "--to", other, "-o", "json")
    with served(url, tmp_path) as client:
        place = created(client, "t")
        client.create_stored_procedure(client.types.StoredProcedure("P", "default", "hive", "ann", "source"))
        client.add_runtime_stats(client.types.RuntimeStat(None, 1, b"before"))
        txn_id, write_id = write(client, "t", place)
        before = everything(url)
        with monkeypatch.context() as impatience:
            impatience.setattr(backup, "_PATIENCE_S", 0)
            refused = run(*move)
        assert (refused[0], "Metastores are connected to the database" in refused[2]) == (1, True)
    code, out, _ = run(*move)

    assert code == 0
    assert json.loads(out)["rows"] == sum(map(len, before.values()))
    assert everything(other) == before
    for command in (("db", "upgrade"), ("db", "backup", str(tmp_path / "late")), ("db", "restored")):
        code, _, told = run(*command, "--database-url", url)
        assert (code, "was moved from this database to another one" in told) == (1, True)
    with served(other, tmp_path) as client:
        assert readable(client, "t", place) == [write_id]
        assert client.get_all_stored_procedures(client.types.ListStoredProcedureRequest("hive")) == ["P"]
        client.add_runtime_stats(client.types.RuntimeStat(None, 2, b"after"))
        assert [one.weight for one in client.get_runtime_stats(client.types.GetRuntimeStatsRequest(-1, -1))] == [2, 1]
        again = write(client, "t", place)
        assert again[0] > txn_id
        assert again[1] == write_id + 1


@pytest.mark.slow   # `make robustness` runs it
def test_a_move_that_is_killed_leaves_the_place_that_was_served(run, two, tmp_path):
    url, other = two
    with served(url, tmp_path) as client:
        created(client, "t")
    before = everything(url)
    command = [sys.executable, "-m", "metastore", "db", "move", "--database-url", url, "--to", other]

    killed = subprocess.run(command, env={**os.environ, "METASTORE_FAILPOINTS": "move.before_commit=kill"},
                            capture_output=True, text=True, check=False)

    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert everything(url) == before
    assert run(*command[3:])[2].endswith("--replace to drop what it holds.\n")
    assert run(*command[3:], "--replace")[0] == 0
    assert everything(other) == before
    assert run("db", "move", "--database-url", url)[0] == 2


def test_the_commands_of_the_pages(two, tmp_path, monkeypatch):
    """Each command of the how-tos, one after the other, as a user types it."""
    url, other = two
    with served(url, tmp_path) as client:
        created(client, "t")
    monkeypatch.setenv("DATABASE_URL", url)
    monkeypatch.setenv("NEW_DATABASE_URL", other)
    monkeypatch.setenv("BACKUPS", str(tmp_path))

    assert how_to.run("high-availability.md") == [0, 0, 0]
    assert how_to.run("upgrade.md") == [0, 0]
    assert how_to.run("backup.md") == [0, 0, 0, 0]
    assert rows(other, "SELECT name FROM tables") == [("t",)]
