"""Secrets are hidden by one rule, from whoever asks and wherever they stand."""

import time

import pytest

from metastore.config import build, sources
from metastore.config.settings import SettingsSource
from metastore.errors import ConfigValueSecurityError
from metastore.redaction import MASK, is_secret, redacted
from metastore.telemetry import logs
from metastore.thrift_server.handlers.session import SessionHandlers
from metastore.web.health import HealthPart

SECRET = ["fs.s3a.secret.key", "fs.s3a.access.key", "fs.azure.account.key.store.dfs.core.windows.net", "hive.x.credential",
          "hive.server2.authentication.ldap.bindpw", "javax.jdo.option.ConnectionPassword", "hive.repl.token", "encryption.key"]


@pytest.mark.parametrize("name", SECRET)
def test_names_that_speak_of_secrets(name):
    assert is_secret(name)


def test_names_that_do_not():
    names = ["hive.txn.timeout", "hive.metastore.keystore.path", "key", "partition_keys", "hive.exec.parallel"]
    assert [name for name in names if is_secret(name)] == []


CONF = "spark.hadoop.fs.s3a.secret.key=hush,spark.executor.memory=2g,spark.jdbc=jdbc:x://u:hush@h/d?password=hush&a=b"
SHOWN = f"spark.hadoop.fs.s3a.secret.key={MASK},spark.executor.memory=2g,spark.jdbc=jdbc:x://u:{MASK}@h/d?password={MASK}&a=b"


def test_secrets_within_a_value_are_hidden_from_clients_commands_and_logs():
    own = sources.command_line([f"metastore.compactor.spark.conf={CONF}"])
    foreign = SettingsSource("hive-site.xml", {"hive.spark.opts": CONF, "hive.ldap.bindpw": "hush"}, foreign=True)
    settings = build([own, foreign])
    asked = SessionHandlers(settings)
    for name in ("metastore.compactor.spark.conf", "hive.spark.opts"):
        assert asked.get_config_value(None, name, "") == SHOWN
    with pytest.raises(ConfigValueSecurityError):
        asked.get_config_value(None, "hive.ldap.bindpw", "")
    assert [row.value for row in settings.shown() if "hush" in row.value] == []
    assert logs.masked(None, "", {"conf": CONF, "fs.s3a.access.key": "hush"}) == {"conf": SHOWN, "fs.s3a.access.key": MASK}


def test_an_error_in_a_setting_does_not_show_its_secrets():
    with pytest.raises(Exception, match="not a setting") as refused:
        build([sources.command_line([f"metastore.compactor.sprk.conf={CONF}"])])
    assert "hush" not in str(refused.value)


def test_a_long_text_costs_time_in_proportion():
    text = "://:" * 100_000 + "a=" * 100_000
    started = time.thread_time()
    redacted(text)
    assert time.thread_time() - started < 20
    assert HealthPart(ready=True).reason == ""
