"""Hive's own Java clients over TLS: a whole session of each, with a trust store as their hive-site.xml names it.

No test of `make test`: `make interop` runs it. A client's own certificate is no setting of any of them, so none can be
shown: what "required" does with them is tested too.
"""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.interop.clients.sessions import NEEDS_JAVA, ran
from tests.interop.java import java_home
from tests.support.certificates import Authority

VERSIONS = ["2.3.10", "3.1.3", "4.2.0"]


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("certificates"))


@pytest.fixture
def server_settings(request, authority):
    """``request.param``: more settings, or the host that the server's certificate names instead."""
    given = getattr(request, "param", {})
    named, more = (authority.server(), given) if isinstance(given, dict) else (authority.issue(given, f"{given}.example"), {})
    return {"hive.metastore.use.SSL": "true", "hive.metastore.keystore.path": str(named),
            "hive.metastore.truststore.path": str(authority.path), **more}


def configured(directory: Path, authority: Authority, version: str, kind: str = "JKS") -> Path:
    """Write a hive-site.xml that trusts this authority into the directory, and return the directory."""
    store = directory / f"trust.{kind}"
    keytool = java_home(NEEDS_JAVA.get(version, 17)) / "bin" / "keytool"
    subprocess.run([keytool, "-importcert", "-file", authority.path, "-keystore", store, "-storetype", kind, "-storepass",
                    "changeit", "-alias", "ca", "-noprompt"], check=True, capture_output=True, timeout=60)
    values = {"use.SSL": "true", "truststore.path": store, "truststore.password": "changeit", "truststore.type": kind,
              "connect.retries": "1"}
    rows = "".join(f"<property><name>hive.metastore.{name}</name><value>{value}</value></property>"
                   for name, value in values.items())
    (directory / "hive-site.xml").write_text(f"<configuration>{rows}</configuration>")
    return directory


@pytest.mark.timeout(900)
@pytest.mark.parametrize(("server_settings", "kind"), [
    ({}, "JKS"), ({"metastore.ssl.client.certificates": "wanted"}, "PKCS12")], indirect=["server_settings"],
    ids=["none", "wanted"])
@pytest.mark.parametrize("version", VERSIONS)
def test_a_session(server, authority, tmp_path, version, kind):
    done = ran(version, server.thrift_uri, configured=configured(tmp_path, authority, version, kind))
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
    assert "fact lock = ACQUIRED" in done.stdout
    assert "fact txns = [ann OPEN, bob ABORTED, eve OPEN]" in done.stdout
    assert "fact locksAtTheEnd = 0" in done.stdout


@pytest.mark.timeout(900)
@pytest.mark.parametrize("version", VERSIONS)
def test_a_server_of_another_authority_is_not_believed(server, tmp_path, version):
    turned_away(server, version, configured(tmp_path, Authority(tmp_path, "Other CA"), version))


@pytest.mark.timeout(900)
@pytest.mark.parametrize("server_settings", [{"metastore.ssl.client.certificates": "required"}], indirect=True, ids=["required"])
@pytest.mark.parametrize("version", VERSIONS)
def test_where_certificates_are_required_they_do_not_get_in(server, authority, tmp_path, version):
    turned_away(server, version, configured(tmp_path, authority, version))


@pytest.mark.timeout(900)
@pytest.mark.parametrize("server_settings", ["elsewhere"], indirect=True)
@pytest.mark.parametrize("version", VERSIONS)
def test_the_hosts_name(server, authority, tmp_path, version):
    """2.3 believes whom the authority signed, whatever their name; 3.1 and later do not."""
    trusting = configured(tmp_path, authority, version)
    if version == "2.3.10":
        assert ran(version, server.thrift_uri, configured=trusting).returncode == 0
    else:
        turned_away(server, version, trusting)


SPARK = """
import sys
from pyspark.sql import SparkSession
uri, store, warehouse = sys.argv[1:]
builder = SparkSession.builder.master("local[1]").enableHiveSupport().config("spark.ui.enabled", "false")
for name, value in {"uris": uri, "use.SSL": "true", "truststore.path": store, "truststore.password": "changeit"}.items():
    builder = builder.config(f"spark.hadoop.hive.metastore.{name}", value)
spark = builder.config("spark.sql.warehouse.dir", warehouse).getOrCreate()
spark.sql("CREATE TABLE t (a INT) STORED AS PARQUET")
spark.sql("INSERT INTO t VALUES (1), (2)")
print("rows", spark.table("t").count())
"""


@pytest.mark.timeout(900)
def test_sparks_own_client(server, authority, tmp_path):
    """The metastore client inside Spark, which takes Hive's keys out of its Hadoop configuration."""
    store = configured(tmp_path, authority, "2.3.10") / "trust.JKS"
    done = subprocess.run([sys.executable, "-c", SPARK, server.thrift_uri, store, (tmp_path / "warehouse").as_uri()],
                          check=False, capture_output=True, text=True, timeout=300, cwd=tmp_path)
    assert "rows 2" in done.stdout, done.stderr[-4000:]
    assert server.server.failed_handshakes == 0


def turned_away(server, version, trusting):
    done = ran(version, server.thrift_uri, configured=trusting)
    assert done.returncode != 0
    assert "TTransportException" in done.stderr
    assert server.database.once("SELECT count(*) FROM txns") == [(0,)]
