"""Hive's own Java clients of every generation against the server: `make interop`; not part of `make test`.

2.3.10 comes out of the jars that PySpark ships; the others are fetched with Maven by their coordinates (pom.xml). Each
runs Session.java, which prints what it was told, one fact a line.
"""

import os
import subprocess
from pathlib import Path

import pyspark
import pytest

from metastore.acid.snapshots import TxnWriteIds, ValidTxnList, ValidWriteIdList
from metastore.thrift_gen.hive_metastore import ttypes
from tests.interop.clients import event_messages
from tests.interop.java import OPENED, compiled, fetched, java_home

HERE = Path(__file__).parent
NEEDS_JAVA = {"4.2.0": 21}
VERSIONS = ["2.3.10", "3.1.3", "4.0.1", "4.1.0", "4.2.0"]


def class_path(version: str) -> str:
    """Return the class path of the client's jars, fetched at the first use."""
    if version == "2.3.10":
        return str(Path(pyspark.__file__).parent / "jars" / "*")
    return fetched(HERE / "pom.xml", version if "messages" in version else f"hive-{version}", version)


def session(version: str, uri: str, program: str = "Session", *arguments: str) -> dict[str, str]:
    """Run a program with the client of this version and return the facts that it printed."""
    done = ran(version, uri, program, *arguments)
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
    return dict(line.removeprefix("fact ").split(" = ", 1) for line in done.stdout.splitlines() if line.startswith("fact "))


def ran(version: str, uri: str, program: str = "Session", *arguments: str,
        configured: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run a program with the client of this version; ``configured``: the directory of its hive-site.xml."""
    home = java_home(NEEDS_JAVA.get(version.removeprefix("messages-"), 17))
    path = compiled(HERE / f"{program}.java", home, class_path(version), version)
    return subprocess.run(
        [home / "bin" / "java", "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", *OPENED,
         "-cp", f"{configured}:{path}" if configured else path, program, uri, *arguments],
        capture_output=True, text=True, check=False, timeout=300, env={**os.environ, "HADOOP_USER_NAME": "ann"})


@pytest.mark.timeout(900)
@pytest.mark.parametrize("version", VERSIONS)
def test_session(server, client, version):
    """Beside another client's EXCL_WRITE lock on another table, whose type 2.3 and 3.1 cannot read (LOCK-13)."""
    client.lock(ttypes.LockRequest([ttypes.LockComponent(
        type=ttypes.LockType.EXCL_WRITE, level=ttypes.LockLevel.TABLE, dbname="db", tablename="other")], None, "x", "h"))

    told = session(version, server.thrift_uri)

    written = version != "2.3.10"
    assert told["lock"] == told["check"] == told["reading"] == "ACQUIRED"
    assert (told["writeId"], told["writeIdAgain"]) == (("1", "1") if written else ("null", "null"))
    assert told["commitOfAborted"].startswith("TxnAbortedException: Transaction txnid:2 already aborted")
    assert told["commitOfUnknown"].startswith("NoSuchTxnException: No such transaction txnid:987654321")
    assert (told["mark"], told["openIsValid"], told["abortedIsValid"], told["ownIsValid"]) == ("3", "false", "false", "true")
    assert (told["rangeAborted"], told["rangeUnknown"]) == ("[2]", "[]")
    assert told["locks"] == "[SHARED_READ ACQUIRED p=1 true, SHARED_READ ACQUIRED null false]"
    assert told["txns"] == "[ann OPEN, bob ABORTED, eve OPEN]"
    assert told["compactions"] == "0"
    assert told["heartbeatOfCommitted"].startswith("NoSuchTxnException: No such txn: 1")
    assert told["checkOfGone"].startswith("NoSuchLockException: No such lock lockid:")
    assert told["locksAtTheEnd"] == "0"
    if written:
        seen, at_the_end = told["validWriteIds"], told["validWriteIdsAtTheEnd"]
        assert "fullTableName:db.t, writeIdHighWaterMark:1, invalidWriteIds:[1], minOpenWriteId:1, abortedBits:" in seen
        assert "fullTableName:db.t, writeIdHighWaterMark:1, invalidWriteIds:[], abortedBits:" in at_the_end
    assert server.database.once(
        "SELECT txn_id, partition, write_id, update_delete FROM completed_txn_components ORDER BY partition") == [
        (1, f"p={number}", 1 if written else None, False) for number in (1, 2)]
    assert client.get_open_txns().open_txns == [2]


@pytest.mark.timeout(900)
@pytest.mark.parametrize("version", VERSIONS)
def test_long_lists(server, client, version):
    """Transactions 1 to 6 are open, 8 to 13 aborted, and 7 and 14 committed: Hive 4 writes the first two as ranges."""
    ids = client.open_txns(ttypes.OpenTxnRequest(num_txns=14, user="ann", hostname="h1")).txn_ids
    client.allocate_table_write_ids(ttypes.AllocateTableWriteIdsRequest(dbName="db", tableName="t", txnIds=ids))
    for txn_id in range(8, 14):
        client.add_dynamic_partitions(ttypes.AddDynamicPartitions(
            txn_id, txn_id, "db", "t", ["p=1"], ttypes.DataOperationType.INSERT))
        client.abort_txn(ttypes.AbortTxnRequest(txnid=txn_id))
    for txn_id in (7, 14):
        client.commit_txn(ttypes.CommitTxnRequest(txnid=txn_id))
    opened, aborted = (*range(1, 7),), (*range(8, 14),)
    invalid = opened + aborted
    ours = ValidWriteIdList("db.t", 14, 1, invalid, frozenset(aborted))
    compactors = ValidWriteIdList("db.t", 14, None, aborted, frozenset(aborted)).for_compactor()
    texts = [] if version == "2.3.10" else [
        f"ValidReadTxnList={ValidTxnList(14, 1, invalid, frozenset(aborted)).format()}",
        f"ValidReaderWriteIdList={ours.format()}", f"ValidCompactorWriteIdList={compactors.format()}",
        f"ValidTxnWriteIdList={TxnWriteIds(3, (ours,)).format()}"]

    told = session(version, server.thrift_uri, "Lists", *texts)

    known = {"2.3.10": frozenset()}.get(version, frozenset(aborted))  # 2.3 does not tell aborted ones from open ones
    assert told["txnsAgain"] == f"[{', '.join(map(str, invalid))}]"
    assert told["seen"] == "[7, 14]"
    assert ValidTxnList.parse(told["txns"]) == ValidTxnList(14, 1, invalid, known)
    assert ValidTxnList.parse(told["mine"]).is_valid(3)
    assert ("1-6" in told["txns"]) is version.startswith("4")
    if texts:
        assert f"writeIdHighWaterMark:14, invalidWriteIds:[{', '.join(map(str, invalid))}], minOpenWriteId:1" in told["writeIds"]
        assert ValidTxnList.parse(told["ValidReadTxnList"]) == ValidTxnList(14, 1, invalid, frozenset(aborted))
        assert ValidWriteIdList.parse(told["ValidReaderWriteIdList"]) == ours
        assert type(compactors).parse(told["ValidCompactorWriteIdList"]) == compactors
        assert TxnWriteIds.parse(told["ValidTxnWriteIdList"]) == TxnWriteIds(3, (ours,))


@pytest.mark.timeout(900)
@pytest.mark.parametrize("version", VERSIONS)
def test_who_gets_a_transactional_table(server, client, tmp_path, version):
    """Hive 3 and later say that they can; 2.3, which is also Spark's, can only say that it wants no check (CLIENT-11)."""
    orc = "org.apache.hadoop.hive.ql.io.orc.Orc"
    sd = ttypes.StorageDescriptor(cols=[ttypes.FieldSchema("id", "int", "")], serdeInfo=ttypes.SerDeInfo("", "", {}),
                                  inputFormat=f"{orc}InputFormat", outputFormat=f"{orc}OutputFormat")
    client.create_database(ttypes.Database("d", "", (tmp_path / "d").as_uri(), {}))
    kinds = {"full": {"transactional": "true"}, "plain": {},
             "appended": {"transactional": "true", "transactional_properties": "insert_only"}}
    for name, parameters in kinds.items():
        client.create_table(ttypes.Table(tableName=name, dbName="d", owner="ann", sd=sd, partitionKeys=[],
                                         tableType="MANAGED_TABLE", parameters=parameters))

    told = session(version, server.thrift_uri, "Tables", *kinds)

    for name, parameters in kinds.items():
        assert (told[f"{name}.listed"], told[f"{name}.byName"], told[f"{name}.unchecked"]) == ("true", "1", name)
        if parameters and version == "2.3.10":
            assert told[name].startswith(f"MetaException: d.{name} is a transactional table (")
        else:
            assert told[name] == name


@pytest.fixture
def server_settings(request):
    return getattr(request, "param", {})


@pytest.mark.timeout(900)
@pytest.mark.parametrize("server_settings", [{"hive.metastore.transactional.event.listeners": "DbNotificationListener"}],
                         indirect=True, ids=["log"])
@pytest.mark.parametrize("version", VERSIONS[2:])
def test_files_that_a_client_tells_of(server, client, tmp_path, version):
    """Hive's own Thrift reads the table and the partition that we kept as its JSON."""
    sd = ttypes.StorageDescriptor(
        cols=[ttypes.FieldSchema("id", "int", "é")], location=(tmp_path / "t").as_uri(), inputFormat="i", outputFormat="o",
        serdeInfo=ttypes.SerDeInfo("", "s", {}))
    client.create_database(ttypes.Database("db", "", tmp_path.as_uri(), {}))
    client.create_table(ttypes.Table(
        tableName="t", dbName="db", owner="ann", sd=sd, partitionKeys=[ttypes.FieldSchema("p", "string", "")],
        tableType="MANAGED_TABLE", parameters={"comment": "☃ 𝄞"}))
    for value in ("1", "2"):
        client.add_partition(ttypes.Partition([value], "db", "t", sd=sd, parameters={}))

    told = session(version, server.thrift_uri, "Notes")

    assert told["events"] == "[CREATE_DATABASE, CREATE_TABLE, ADD_PARTITION, ADD_PARTITION, OPEN_TXN, ALLOC_WRITE_ID_EVENT, COMMIT_TXN]"
    assert told["p=1"] == ("1 file:/w/p=1/delta_1_1/bucket_0###delta_1_1]file:/w/p=1/delta_1_1/bucket_1###delta_1_1 true true")
    assert told["p=2"] == "1 file:/w/p=2/delta_1_1/bucket_0###delta_1_1 true true"


@pytest.mark.timeout(900)
@pytest.mark.parametrize("version", ["2.3.10", "3.1.3", "messages-4.0.1", "messages-4.2.0"])
def test_messages_of_events(client, tmp_path, version):
    """Hive's own deserializers read every message, and the objects in it, as they were written."""
    told, lines = event_messages.requested(client, tmp_path)
    done = ran(version, "", "Events", event_messages.DESERIALIZER, str(lines))
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
    event_messages.require_read(version, told, done.stdout)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("server_settings", [{
    "hive.metastore.event.message.factory": "org.apache.hadoop.hive.metastore.messaging.json.gzip.GzipJSONMessageEncoder",
    "hive.metastore.alterPartitions.notification.v2.enabled": "true"}], indirect=True)
def test_compressed_messages_of_events(client, tmp_path):
    """As Hive 4.2 writes them itself."""
    told, lines = event_messages.requested(client, tmp_path)
    done = ran("messages-4.2.0", "", "Events", event_messages.GZIP_DESERIALIZER, str(lines))
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
    event_messages.require_read("messages-4.2.0", told, done.stdout)
