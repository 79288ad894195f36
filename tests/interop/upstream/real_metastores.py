"""In front of Hive's own metastores 2.3.10 and 4.2.0: `make interop-upstream`; not part of `make test`.

2.3.10 comes out of the jars that PySpark ships, on Derby; 4.2.0 is fetched with Maven and pip, on PostgreSQL.
"""

import json
import os
import signal
import subprocess
import sys
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from types import SimpleNamespace

import psycopg2
import pytest

from benchmarks import hive
from benchmarks.peers import await_port, end
from benchmarks.peers import database as new_database
from metastore.app import App
from metastore.client import MetastoreClient
from metastore.db import failpoints
from metastore.thrift_gen.hive_metastore import ttypes as T
from metastore.txns.adoption.service import AdoptionService
from tests.integration.db.test_hive_views import asked, make_lake, of_hive
from tests.integration.upstream.conftest import Writing, settings, table
from tests.interop.clients.sessions import session
from tests.interop.java import java_home
from tests.support.certificates import Authority
from tests.support.hive_metastore import HiveMetastore

VERSIONS = ["2.3.10", "4.2.0"]


@contextmanager
def hive_4_2(postgres, work):
    url = new_database(postgres.postgres.tcp_url, "hive_4_2")
    with hive.hive_4_2(work, url, {}) as ((host, port), pid):
        yield f"thrift://{host}:{port}", url, pid


@pytest.fixture(scope="module", params=VERSIONS)
def upstream(request, postgres, tmp_path_factory):
    """``version``, ``uri``, ``work``, ``pid`` and, of 4.2.0, ``database_url`` of a real metastore."""
    work = tmp_path_factory.mktemp("hive")
    with ExitStack() as running:
        if request.param == "2.3.10":
            behind = running.enter_context(HiveMetastore(work))
            uri, url, pid = behind.uri, None, behind.pid
        else:
            uri, url, pid = running.enter_context(hive_4_2(postgres, work))
        yield SimpleNamespace(
            version=request.param, uri=uri, work=work, database_url=url, pid=pid, running=running)


@pytest.fixture
def front(upstream, database_url):
    app = App(settings(database_url, upstream.work, **{"metastore.upstream.uris": upstream.uri}), loops=False, planner=[])
    app.start()
    yield app
    app.stop()


@pytest.fixture
def client(front):
    with MetastoreClient(front.thrift_uri, user="ann") as connected:
        yield connected


@pytest.fixture
def catalog(upstream):
    with MetastoreClient(upstream.uri) as connected:
        yield connected


@pytest.fixture
def writing(client):
    return Writing(client)


@pytest.fixture
def db(client, request):
    """Yield a database of the test's own."""
    name = f"d{abs(hash(request.node.name)) % 10**6}"
    client.create_database(T.Database(name=name))
    yield name
    client.drop_database(name, True, True)


@pytest.fixture
def acid(upstream, db):
    """``acid(name)``: a transactional table as 2.3 wants it, bucketed and of a type, which 4.2 takes from few."""
    def make(name="t", keys=""):
        made = table(name, db, keys)
        if upstream.version == "2.3.10":
            made.sd.bucketCols, made.sd.numBuckets, made.tableType = ["id"], 2, "MANAGED_TABLE"
        return made
    return make


def found(client, db, name):
    """4.2 has no get_table any more."""
    return client.get_table_req(T.GetTableRequest(
        dbName=db, tblName=name, capabilities=T.ClientCapabilities([T.ClientCapability.INSERT_ONLY_TABLES]))).table


def rename(client, db, name, new):
    changed = found(client, db, name)
    changed.tableName = new
    client.alter_table_with_environment_context(db, name, changed, T.EnvironmentContext(properties={}))


def test_the_same_answers_as_when_asked_directly(client, catalog, db, acid):
    client.create_table(acid(keys="day:string"))
    client.append_partition(db, "t", ["1"])
    for call in (lambda c: found(c, db, "t"), lambda c: c.get_all_tables(db), lambda c: c.get_database(db),
                 lambda c: c.get_partitions(db, "t", -1), lambda c: c.get_partition_names(db, "t", -1),
                 lambda c: c.get_fields(db, "t"), lambda c: c.get_config_value("hive.metastore.uris", "x")):
        assert call(client) == call(catalog)
    assert client.get_table(db, "t").sd == found(catalog, db, "t").sd
    assert [one.tableName for one in client.get_table_objects_by_name(db, ["t"])] == ["t"]
    with pytest.raises(T.NoSuchObjectException) as direct:
        found(catalog, db, "missing")
    with pytest.raises(T.NoSuchObjectException) as through:
        found(client, db, "missing")
    assert through.value.message == direct.value.message


def test_drop_and_rename_keep_both_sides_right(client, catalog, writing, db, acid):
    client.create_table(acid())
    writing.write(db=db)
    txn, _ = writing.write(db=db, commit=False)
    client.abort_txn(T.AbortTxnRequest(txn))
    rename(client, db, "t", "u")
    assert catalog.get_all_tables(db) == ["u"]
    assert writing.valid("u", db) == (2, [2])
    assert writing.write("u", db)[1] == 3
    client.drop_table(db, "u", True)
    assert catalog.get_all_tables(db) == []
    client.create_table(acid("u"))
    assert writing.write("u", db)[1] == 4


def test_what_died_after_the_upstream_renamed_is_followed_by_the_keeper(
        front, client, catalog, writing, db, acid, monkeypatch):
    client.create_table(acid())
    txn, _ = writing.write(db=db, commit=False)
    client.abort_txn(T.AbortTxnRequest(txn))
    monkeypatch.setattr(failpoints, "hit", failpoints.Failpoints("upstream.answered=error").hit)
    rename(client, db, "t", "u")
    monkeypatch.undo()
    assert writing.valid("u", db) == (1, [1])
    assert front.services.upstream.changes.settle() == 1
    assert writing.valid("u", db) == (1, [1])
    assert writing.write("u", db)[1] == 2


def kill(upstream):
    """End the upstream by SIGKILL. What is returned starts it again: the same command, on the same port."""
    process = Path("/proc") / str(upstream.pid)
    command = (process / "cmdline").read_text().split("\0")[:-1]
    environment = dict(pair.split("=", 1) for pair in (process / "environ").read_text().split("\0") if "=" in pair)
    log = upstream.work / "again.log"

    def again():
        with log.open("wb") as out:
            started = subprocess.Popen(command, cwd=upstream.work, env=environment, stdout=out, stderr=subprocess.STDOUT)
        upstream.running.callback(end, started)
        await_port(started, int(upstream.uri.rpartition(":")[2]), log)

    os.kill(upstream.pid, signal.SIGKILL)
    os.waitid(os.P_PID, upstream.pid, os.WEXITED | os.WNOWAIT)
    return again


def test_a_compaction_finds_its_table(client, writing, db, acid):
    client.create_table(acid())
    writing.write(db=db)
    assert client.compact2(T.CompactionRequest(dbname=db, tablename="t", type=T.CompactionType.MAJOR)).accepted
    client.create_table(acid("p", keys="day:string"))
    client.append_partition(db, "p", ["1"])
    request = T.CompactionRequest(dbname=db, tablename="p", partitionname="day=1", type=T.CompactionType.MAJOR)
    assert client.compact2(request).accepted
    with pytest.raises(Exception, match="does not exist"):
        client.compact2(T.CompactionRequest(dbname=db, tablename="missing", type=T.CompactionType.MAJOR))


def test_a_cut_over_and_back_moves_no_table_and_no_id_goes_backwards(
        upstream, front, client, catalog, writing, db, acid):
    if upstream.database_url is None:
        pytest.skip("2.3 has no write ids, and is on Derby here")
    there = Writing(catalog)
    client.create_table(acid())
    there.write(db=db)
    txn, _ = there.write(db=db, commit=False)
    catalog.abort_txn(T.AbortTxnRequest(txn))
    open_txn, write_id = there.write(db=db, commit=False)
    adoption = AdoptionService(front.database)

    adoption.adopt(upstream.database_url, dry_run=False)

    mark, invalid = writing.valid(db=db)  # cut where nothing above is visible either
    assert (mark, invalid) == (write_id - 1, there.valid(db=db)[1][:1])
    client.commit_txn(T.CommitTxnRequest(open_txn))
    new, new_id = writing.write(db=db)
    assert (new, new_id) == (open_txn + 1, write_id + 1)
    with closing(psycopg2.connect(upstream.database_url)) as hive_db, hive_db, hive_db.cursor() as cursor:
        cursor.execute(adoption.release())
    assert there.valid(db=db) == (new_id, [write_id - 1])
    later, later_id = there.write(db=db)
    assert (later, later_id) == (new + 2, new_id + 1)


def test_the_upstream_speaks_tls(postgres, database_url, tmp_path):
    """Hive's own TLS, with a Java key store; in the clear there is no answer."""
    authority = Authority(tmp_path)
    pem, store = authority.server(), tmp_path / "server.p12"
    subprocess.run(["openssl", "pkcs12", "-export", "-in", pem, "-out", store, "-passout", "pass:changeit"], check=True)
    jks = tmp_path / "server.jks"
    subprocess.run([java_home(17) / "bin" / "keytool", "-importkeystore", "-srckeystore", store, "-srcstoretype", "PKCS12", "-srcstorepass",
                    "changeit", "-destkeystore", jks, "-deststoretype", "JKS", "-deststorepass", "changeit"], check=True, capture_output=True)
    with HiveMetastore(tmp_path / "hive", hive__metastore__use__SSL="true", hive__metastore__keystore__path=str(jks),
                       hive__metastore__keystore__password="changeit") as behind:
        secure = {"metastore.upstream.uris": behind.uri, "metastore.upstream.use.SSL": "true",
                  "metastore.upstream.truststore.path": str(authority.path)}
        app = App(settings(database_url, tmp_path, **secure), loops=False)
        app.start()
        try:
            with MetastoreClient(app.thrift_uri, user="ann") as client:
                client.create_database(T.Database(name="d"))
                client.create_table(table(db="d", keys="day:string", EXTERNAL="TRUE"))
                client.append_partition("d", "t", ["1"])
                assert client.get_partition_names("d", "t", -1) == ["day=1"]
                client.drop_database("d", True, True)
        finally:
            app.stop()


@pytest.mark.timeout(900)
@pytest.mark.parametrize("version", VERSIONS)
def test_hives_own_client_makes_transactions(front, version):
    told = session(version, front.thrift_uri)
    assert told["lock"] == told["check"] == told["reading"] == "ACQUIRED"
    assert told["locksAtTheEnd"] == "0"


@pytest.mark.timeout(900)
def test_spark_works_through_the_one_address(front, upstream):
    """Also where the upstream is a 4.2.0, which lacks what Spark's own client asks for."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.interop.upstream.spark_statements", front.thrift_uri,
         (upstream.work / "spark").as_uri()],
        capture_output=True, text=True, check=False, timeout=600, env={**os.environ, "PYSPARK_PYTHON": sys.executable})
    assert done.returncode == 0, (done.stdout + done.stderr)[-5000:]
    assert json.loads(done.stdout.splitlines()[-1]) == {
        "plain": 2, "partitions": ["day=1", "day=2"], "acid": [[1, "a"], [2, "x"]], "left": []}


def test_transactions_go_on_while_the_upstream_is_dead_and_it_goes_on_where_it_was(
        client, writing, db, acid, upstream):
    client.create_table(acid())
    txn, write_id = writing.write(db=db, commit=False)
    start_again = kill(upstream)

    with pytest.raises(T.MetaException, match=r"upstream .* does not answer"):
        client.drop_table(db, "t", True)
    client.heartbeat(T.HeartbeatRequest(txnid=txn))
    client.commit_txn(T.CommitTxnRequest(txn))
    assert writing.valid(db=db) == (write_id, [])

    start_again()
    rename(client, db, "t", "u")
    with MetastoreClient(upstream.uri) as catalog:
        assert catalog.get_all_tables(db) == ["u"]
    assert writing.valid("u", db) == (write_id, [])
    assert writing.write("u", db)[1] == write_id + 1


class Late(MetastoreClient):
    """A client of Hive 4.2, which has no get_table any more."""

    def get_table(self, db, name):
        return self.get_table_req(T.GetTableRequest(dbName=db, tblName=name)).table


NOT_COMPARED = {"CREATE_TIME", "LOCATION", "DB_LOCATION_URI", "TBL_TYPE"}
"""Times, places, and that Hive 4 makes external tables of plain ones."""


def stored(url, schema):
    """Columns of each of Hive's tables with their types, and the rows about `lake` without numbers of objects."""
    names = [name for name in of_hive() if name not in {"CTLGS", "DBS", "VERSION", "CDS", "SERDES", "HIVE_LOCKS", "TXNS"}]
    columns = asked(url, "SELECT table_name, column_name, data_type IN ('bigint', 'integer') AS is_number FROM information_schema.columns "
                    f"WHERE table_schema = '{schema}'", schema)
    rows = {name: sorted(str({key: value for key, value in row.items() if not key.endswith("_ID") and key not in NOT_COMPARED})
                         for row in asked(url, f'SELECT * FROM "{name}"', schema)
                         if row.get("PARAM_KEY") not in {"transient_lastDdlTime", "EXTERNAL", "TRANSLATED_TO_EXTERNAL", "external.table.purge"}) for name in names}
    return {(row["table_name"], row["column_name"], row["is_number"]) for row in columns if row["table_name"] in of_hive()}, rows


def test_views_have_the_columns_and_rows_of_hives_own_tables(upstream, database_url, tmp_path):
    if upstream.database_url is None:
        pytest.skip("2.3.10 is on Derby")
    with Late(upstream.uri) as catalog:
        make_lake(catalog)
    app = App(settings(database_url, tmp_path), loops=False, planner=[])
    app.start()
    with MetastoreClient(app.thrift_uri) as ours:
        make_lake(ours)
    app.stop()

    columns, rows = stored(upstream.database_url, "public")
    our_columns, our_rows = stored(database_url, "hive")
    assert our_columns == columns
    assert {**our_rows, "COLUMNS_V2": sorted(set(our_rows["COLUMNS_V2"]))} == {**rows, "COLUMNS_V2": sorted(set(rows["COLUMNS_V2"]))}
