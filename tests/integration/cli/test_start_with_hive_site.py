"""The page on a first trial, with a company's files as they are (`make interop-s3` starts a server with them, on an S3 server)."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from urllib.parse import urlsplit

import click
import pytest

from metastore.cli.main import cli
from metastore.client import MetastoreClient
from metastore.config import hive_image
from metastore.config.hooks import HookSettings
from metastore.config.keys import keys_of
from metastore.redaction import MASK
from tests.support import how_to
from tests.support.thrift_server import until
from tests.unit.tls.test_credential_files import MADE_BY_HADOOP

PAGE = "start-with-your-hive-site.md"
COMPANY = how_to.PAGES.parents[1] / "tests" / "support" / "company"


@pytest.fixture
def conf(monkeypatch, tmp_path):
    shutil.copytree(COMPANY, tmp_path / "conf")
    (tmp_path / "credentials.jceks").write_bytes(MADE_BY_HADOOP)
    for name, text in {"HIVE_CONF_DIR": tmp_path / "conf", "CREDENTIALS": tmp_path / "credentials.jceks", "DATABASE": "postgresql://h/d"}.items():
        monkeypatch.setenv(name, str(text))


def test_the_settings_of_a_company_are_shown_without_its_secrets(conf, capsys):
    [[_, *shown], [_, *served]] = how_to.commands(PAGE)
    cli.main([*shown, "-o", "json"], standalone_mode=False)
    out = capsys.readouterr().out
    rows = {row["key"]: row for row in json.loads(out)}

    assert rows["hive.metastore.warehouse.dir"]["value"] == "s3a://lake/warehouse"
    assert rows["hive.metastore.warehouse.external.dir"]["value"] == "s3a://lake/warehouse/external"
    assert rows["metastore.database.url"]["value"] == rows["metastore.database.password"]["value"] == MASK
    assert rows["fs.s3a.endpoint"]["value"] == "minio:9000"
    assert rows["fs.s3a.secret.key"]["value"] == rows["fs.s3a.bucket.archive.secret.key"]["value"] == MASK
    assert rows["fs.s3a.connection.maximum"]["effect"].startswith("only in compaction jobs")
    for secret in ("hüsh", "sec/ret", "archive-secret"):
        assert secret not in out
    cli.get_command(click.Context(cli), served[0]).make_context("serve", served[1:])


def test_every_option_of_the_page_is_taken(conf):
    text = (how_to.PAGES / PAGE).read_text()
    for setting in set(re.findall(r"--set (\S+=[^\s`]*)", text)) - {"KEY=VALUE"}:
        cli.main(["config", "show", "--set", setting], standalone_mode=False)
    [docker] = re.findall(r"docker run .*?(?=\n```)", text, re.DOTALL)
    words = shlex.split(docker.replace("\\\n", " "))
    variables = dict(words[at + 1].split("=", 1) for at, word in enumerate(words) if word == "-e")
    assert len(list(hive_image.sources({**variables, hive_image.MARK: "true"}))) == 2


def test_the_page_has_every_variable_and_the_image_says_that_it_is_one():
    text = (how_to.PAGES / PAGE).read_text()
    for name in ("SERVICE_NAME", "DB_DRIVER", "SERVICE_OPTS", "HADOOP_CLIENT_OPTS", "HIVE_CUSTOM_CONF_DIR", "METASTORE_PORT", "IS_RESUME", "SCHEMA_COMMAND"):
        assert f"`{name}`" in text
    for image in ("server", "worker"):
        assert f"{hive_image.MARK}=true" in (how_to.PAGES.parents[1] / "deploy" / "images" / f"{image}.Dockerfile").read_text()
    assert all(key.name in text for name, key in keys_of(HookSettings) if not key.without_effect)


@pytest.mark.timeout(120, method="signal")  # a start that hangs says where, and ends no worker
def test_what_starts_apaches_image_starts_ours(postgres, tmp_path):
    """The variables of its documentation, on PostgreSQL; a password with what a shell and a URL would take for theirs."""
    place, (ready, log) = urlsplit(postgres.postgres.tcp_url), (tmp_path / "ready.json", tmp_path / "log")
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "hive-site.xml").write_text(
        f"<configuration><property><name>hive.metastore.warehouse.dir</name><value>{(tmp_path / 'warehouse').as_uri()}</value></property></configuration>")
    with postgres.empty() as url:
        options = {"javax.jdo.option.ConnectionDriverName": "org.postgresql.Driver", "javax.jdo.option.ConnectionUserName": place.username,
                   "javax.jdo.option.ConnectionURL": f"jdbc:postgresql://{place.hostname}:{place.port}{urlsplit(url).path}?ApplicationName=hive",
                   "javax.jdo.option.ConnectionPassword": place.password, "metastore.server.allow.insecure": "true", "metastore.http.port": "0"}
        environment = {**os.environ, hive_image.MARK: "true", "SERVICE_NAME": "metastore", "DB_DRIVER": "postgres", "METASTORE_PORT": "0",
                       "SERVICE_OPTS": f"-Xmx1G {' '.join(f'-D{name}={shlex.quote(text)}' for name, text in options.items())}",
                       "HIVE_CUSTOM_CONF_DIR": str(tmp_path / "conf")}
        with log.open("wb") as said, subprocess.Popen([sys.executable, "-m", "metastore", "serve", "--data-dir", tmp_path / "data", "--ready-file", ready],
                                                      env=environment, stdin=subprocess.DEVNULL, stdout=said, stderr=said) as server:
            try:
                until(lambda: ready.exists() or server.poll() is not None)
                assert ready.exists(), log.read_text()
                with MetastoreClient(json.loads(ready.read_text())["thrift"], timeout_s=30) as client:
                    assert client.get_database("default").locationUri == (tmp_path / "warehouse").as_uri().replace("///", "/")
            finally:
                server.terminate()
        assert place.password not in log.read_text()
        assert '"event": "open_to_the_network"' in log.read_text()
