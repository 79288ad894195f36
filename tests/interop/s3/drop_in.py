"""A metastore that is started with a company's own hive-site.xml and core-site.xml: nothing else says where its S3 is, and who asks it.

Its secret key lies in a credential file that Hadoop's own tool made. The process has no AWS_* variable.
"""

import json
import os
import subprocess
import sys
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from urllib.parse import urlsplit

import pyspark
import pytest

from metastore.files import Files
from metastore.object_stores import ObjectStores
from metastore.streaming import connect
from tests.interop.java import fetched
from tests.interop.s3.store import served
from tests.support import how_to
from tests.support.able import AbleClient
from tests.support.thrift_server import until

HERE = Path(__file__).parent
COMPANY = HERE.parents[1] / "support" / "company"
JARS = Path(pyspark.__file__).with_name("jars") / "*"

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def lake():
    with served() as store:
        yield store


@pytest.fixture(scope="module")
def company(lake, postgres, tmp_path_factory):
    """Yield the variables of the environment that complete the company's files."""
    database = urlsplit(postgres.postgres.tcp_url)
    credentials = tmp_path_factory.mktemp("company") / "credentials.jceks"
    for alias, secret in (("fs.s3a.secret.key", "sec/ret+key"), ("javax.jdo.option.ConnectionPassword", database.password)):
        subprocess.run(["java", "-cp", JARS, "org.apache.hadoop.security.alias.CredentialShell", "create", alias, "-value", secret,
                        "-provider", f"localjceks://file{credentials}"], check=True, capture_output=True)
    with postgres.cloned() as url:
        usual = {name: text for name, text in os.environ.items() if not name.startswith("AWS_")}
        yield {**usual, "S3_ENDPOINT": urlsplit(lake.url).netloc, "CREDENTIALS": str(credentials), "DB_HOST": database.hostname,
               "DB_PORT": str(database.port), "DB_NAME": urlsplit(url).path.strip("/"), "DB_USER": database.username, "AWS_EC2_METADATA_DISABLED": "true"}


@contextmanager
def serving(environment, place, *options, command=("serve", "--config", COMPANY)):
    ready, log = place / "ready.json", place / "log"
    with log.open("wb") as said:
        server = subprocess.Popen([sys.executable, "-m", "metastore", *command, "--port", "0", "--http-port", "0",
                                   "--ready-file", ready, *options], env=environment, stderr=said, stdout=said)
    try:
        until(lambda: ready.exists() or server.poll() is not None)
        assert ready.exists(), log.read_text()
        yield json.loads(ready.read_text())["thrift"]
    finally:
        server.terminate()
        server.wait(60)
        assert "sec/ret" not in log.read_text()
        assert "archive-secret" not in log.read_text()
        print(log.read_text())


def table(types, name, location=None, **parameters):
    columns = [types.FieldSchema("id", "int", ""), types.FieldSchema("name", "string", "")]
    orc = "org.apache.hadoop.hive.ql.io.orc.Orc"
    storage = types.StorageDescriptor(
        columns, location, f"{orc}InputFormat", f"{orc}OutputFormat", False, -1, types.SerDeInfo("", f"{orc}Serde", {}), [], [], {})
    return types.Table(name, "sales", "hive", 0, 0, 0, storage, [], parameters, None, None, "MANAGED_TABLE")


def asked_by(requests):
    return {request.key_id for request in requests}


def test_a_database_and_a_table_come_and_go_with_their_data(lake, company, tmp_path, monkeypatch):
    """By the page's own command, whose database wins over that of the files; user and password are theirs."""
    monkeypatch.setenv("HIVE_CONF_DIR", str(COMPANY))
    monkeypatch.setenv("DATABASE", f"postgresql://{company['DB_HOST']}:{company['DB_PORT']}/{company['DB_NAME']}")
    [_, [_, *command]] = how_to.commands("start-with-your-hive-site.md")
    elsewhere = {**company, "DB_HOST": "db.invalid"}
    with lake.watched() as seen, serving(elsewhere, tmp_path, "--no-loops", command=command) as uri, AbleClient(uri) as client:
        types = client.types
        client.create_database(types.Database("sales", "", None, {}))
        client.create_table(table(types, "orders"))
        location = client.get_table("sales", "orders").sd.location
        key = location.removeprefix(f"s3a://{lake.bucket}/")
        lake.client.put_object(Bucket=lake.bucket, Key=f"{key}/000000_0", Body=b"x")
        assert client.get_database("sales").locationUri == f"s3a://{lake.bucket}/warehouse/external/sales.db"
        assert key.startswith("warehouse/")
        client.drop_table("sales", "orders", True)
        assert lake.keys() == []
        client.drop_database("sales", True, False)
    assert asked_by(seen) == {"company", "test"}, "the company's keys, and those of this test's own object"
    assert lake.keys() == []


def test_another_bucket_is_asked_with_its_own_keys(lake, company, tmp_path):
    lake.client.create_bucket(Bucket="archive")
    more = ("--no-loops", "--set", "metastore.warehouse.roots=s3a://archive")
    with lake.watched() as seen, serving(company, tmp_path, *more) as uri, AbleClient(uri) as client:
        client.create_database(client.types.Database("old", "", "s3a://archive/old", {}))
        client.drop_database("old", True, False)
    assert {request.key_id for request in seen if request.bucket == "archive"} == {"archivist"}


def test_compactions_reach_the_store_too(lake, company, tmp_path):
    jars = fetched(HERE / "pom.xml", "s3a", "s3")
    (tmp_path / "spark-defaults.conf").write_text(f"spark.driver.extraClassPath {jars}\nspark.executor.extraClassPath {jars}\n")
    environment = {**company, "SPARK_CONF_DIR": str(tmp_path), "PYTHONPATH": str(HERE.parents[2])}
    own = Files(stores=ObjectStores({"fs.s3a.endpoint": lake.url, "fs.s3a.access.key": "writer", "fs.s3a.secret.key": "writer"}))
    quick = ("--set", "hive.compactor.worker.sleep.time=200ms", "--set", "hive.compactor.initiator.on=false")
    with serving(environment, tmp_path, *quick) as uri, AbleClient(uri) as client:
        types = client.types
        client.create_database(types.Database("sales", "", None, {}))
        client.create_table(table(types, "events", transactional="true"))
        for number in range(3):
            with connect("sales.events", uri=uri, files=own) as stream, stream.transaction():
                stream.write(f"{number},n")
        with lake.watched() as seen:
            client.compact2(types.CompactionRequest("sales", "events", None, types.CompactionType.MAJOR))
            state = until(lambda: next((one for one in client.show_compact(types.ShowCompactRequest()).compacts
                                        if one.state not in {"initiated", "working"}), None))
    assert state.state in {"ready for cleaning", "succeeded"}, state.errorMessage
    assert asked_by(seen) == {"company"}
    assert any("/base_" in request.key for request in seen if request.kind in {"PutObject", "CompleteMultipartUpload", "CopyObject"})


@pytest.mark.parametrize(("chain", "asked"), [
    ("org.apache.hadoop.fs.s3a.auth.AssumedRoleCredentialProvider", "ASIA"),
    ("com.amazonaws.auth.EnvironmentVariableCredentialsProvider, org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider", "of-environment"),
    ("software.amazon.awssdk.auth.credentials.ContainerCredentialsProvider, org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider", "company"),
    ("org.apache.hadoop.fs.s3a.AnonymousAWSCredentialsProvider", ""),
])
def test_a_chain_of_credential_providers_is_asked_in_its_order(lake, monkeypatch, chain, asked):
    """The role is one of moto's STS, which gives out keys of its own."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "of-environment")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "of-environment")
    files = Files(stores=ObjectStores({
        "fs.s3a.endpoint": lake.url, "fs.s3a.access.key": "company", "fs.s3a.secret.key": "hush", "fs.s3a.aws.credentials.provider": chain,
        "fs.s3a.assumed.role.arn": "arn:aws:iam::123456789012:role/lake", "fs.s3a.assumed.role.sts.endpoint": lake.url,
        "fs.s3a.assumed.role.sts.endpoint.region": "us-east-1"}))
    with lake.watched() as seen, suppress(PermissionError) if not asked else nullcontext():  # moto's buckets are private
        files.write(f"s3a://{lake.bucket}/chain/f", b"x")
        assert files.read(f"s3a://{lake.bucket}/chain/f") == b"x"
        files.delete(f"s3a://{lake.bucket}/chain")
    assert {request.key_id[:len(asked)] or request.key_id for request in seen if request.bucket} == {asked}
    of_sts = [request.key_id for request in seen if not request.bucket]
    assert of_sts == (["company"] if asked == "ASIA" else [])
