"""Hive's own Java clients of every generation against the server: `make interop`; not part of `make test`.

2.3.10 comes out of the jars that PySpark ships; the others are fetched with Maven by their coordinates (pom.xml). Each
runs Session.java, which prints what it was told, one fact a line.
"""

import os
import shutil
import subprocess
from functools import cache
from pathlib import Path

import pyspark
import pytest

from metastore.thrift_gen.hive_metastore import ttypes

HERE = Path(__file__).parent
BUILT = HERE.parents[2] / ".data" / "interop"
NEEDS_JAVA = {"4.2.0": 21}
OPENED = [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in (
    "java.lang", "java.lang.reflect", "java.io", "java.net", "java.nio", "java.util", "java.util.concurrent",
    "java.util.concurrent.atomic", "java.util.regex", "sun.nio.ch", "sun.security.action", "sun.util.calendar")]
VERSIONS = ["2.3.10", "3.1.3", "4.0.1", "4.1.0", "4.2.0"]


@cache
def java_home(least: int) -> Path | None:
    """The oldest Java on this machine, not older than this, with a compiler."""
    homes = {Path(shutil.which("javac") or "/").resolve().parents[1], *Path("/usr/lib/jvm").glob("*")}
    found = []
    for home in homes:
        if (home / "bin" / "javac").exists():
            text = subprocess.run([home / "bin" / "javac", "-version"], capture_output=True, text=True, check=True)
            found.append((int((text.stdout + text.stderr).split()[-1].split(".")[0]), home))
    return min((one for one in found if one[0] >= least), default=(0, None))[1]


def class_path(version: str) -> str:
    """The client's jars, fetched at the first use."""
    if version == "2.3.10":
        return str(Path(pyspark.__file__).parent / "jars" / "*")
    jars = BUILT / version / "jars"
    if not jars.exists():
        if shutil.which("mvn") is None:
            pytest.skip("Maven is missing: install the package maven")
        fresh = jars.with_name("fetching")
        subprocess.run(["mvn", "-q", "-B", "-f", HERE / "pom.xml", f"-Phive-{version}", "dependency:copy-dependencies",
                        f"-DoutputDirectory={fresh}"], check=True)
        fresh.rename(jars)
    return str(jars / "*")


def session(version: str, uri: str) -> dict[str, str]:
    """What the client of this version was told."""
    home = java_home(NEEDS_JAVA.get(version, 17))
    if home is None:
        pytest.skip(f"The classes of Hive {version} need Java {NEEDS_JAVA.get(version, 17)} or later")
    jars, classes = class_path(version), BUILT / version / "classes"
    classes.mkdir(parents=True, exist_ok=True)
    subprocess.run([home / "bin" / "javac", "-nowarn", "-proc:none", "-cp", jars, "-d", classes, HERE / "Session.java"],
                   check=True)
    done = subprocess.run(
        [home / "bin" / "java", "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", *OPENED,
         "-cp", f"{classes}:{jars}", "Session", uri],
        capture_output=True, text=True, check=False, timeout=300, env={**os.environ, "HADOOP_USER_NAME": "ann"})
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
    return dict(line.removeprefix("fact ").split(" = ", 1) for line in done.stdout.splitlines() if line.startswith("fact "))


@pytest.mark.timeout(900)
@pytest.mark.parametrize("version", VERSIONS)
def test_session(server, client, version):
    """Beside another client's EXCL_WRITE lock on another table, whose type 2.3 and 3.1 cannot read (X5)."""
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
