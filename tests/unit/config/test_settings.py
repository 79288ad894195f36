"""Keys in every spelling, from every source, and what is said about wrong ones."""

import dataclasses
import re
from datetime import timedelta
from pathlib import Path

import pytest

import metastore
from metastore.config import DatabaseSettings, Settings, build, sources
from metastore.config.settings import ROWS, SettingsSource
from metastore.errors import ConfigValueSecurityError, InvalidInputError
from metastore.redaction import MASK


def test_defaults_read_back_as_they_are_written():
    for row in set(ROWS.values()):
        assert row.key.kind.parse(row.key.default) == getattr(getattr(Settings(), row.concept), row.attribute), row.key.name


def test_no_spelling_means_two_keys():
    spellings = {}
    for name, row in ROWS.items():
        assert spellings.setdefault(name, row.key.name) == row.key.name
    for row in set(ROWS.values()):
        for name in row.key.names:
            assert ROWS[name] is row or ROWS[name].key.name == row.key.name, name


# (Hive's name, MetastoreConf's name, default), as Hive's own code has them (SET-1)
HIVE = [
    ("hive.txn.timeout", "metastore.txn.timeout", "300s"),
    ("hive.repl.txn.timeout", "metastore.repl.txn.timeout", "11d"),
    ("hive.max.open.txns", "metastore.max.open.txns", "100000"),
    ("hive.txn.max.open.batch", "metastore.txn.max.open.batch", "1000"),
    ("hive.count.open.txns.interval", "metastore.count.open.txns.interval", "1s"),
    ("hive.metastore.acid.housekeeper.interval", "metastore.acid.housekeeper.interval", "60s"),
    ("hive.timedout.txn.reaper.start", "metastore.timedout.txn.reaper.start", "100s"),
    ("hive.timedout.txn.reaper.interval", "metastore.timedout.txn.reaper.interval", "180s"),
    ("hive.compactor.check.interval", "metastore.compactor.check.interval", "300s"),
    ("hive.compactor.delta.num.threshold", "metastore.compactor.delta.num.threshold", "10"),
    ("hive.compactor.delta.pct.threshold", "metastore.compactor.delta.pct.threshold", "0.1"),
    ("hive.compactor.abortedtxn.threshold", "metastore.compactor.abortedtxn.threshold", "1000"),
    ("hive.compactor.aborted.txn.time.threshold", "metastore.compactor.aborted.txn.time.threshold", "12h"),
    ("hive.compactor.worker.timeout", "metastore.compactor.worker.timeout", "86400s"),
    ("hive.compactor.cleaner.run.interval", "metastore.compactor.cleaner.run.interval", "5000ms"),
    ("hive.compactor.history.retention.succeeded", "metastore.compactor.history.retention.succeeded", "3"),
    ("hive.compactor.history.retention.failed", "metastore.compactor.history.retention.failed", "3"),
    ("hive.compactor.history.retention.did.not.initiate", "metastore.compactor.history.retention.attempted", "2"),
    ("hive.metastore.server.max.message.size", "metastore.server.max.message.size", "104857600"),
    ("hive.metastore.thrift.framed.transport.enabled", "metastore.thrift.framed.transport.enabled", "false"),
]


@pytest.mark.parametrize(("hive", "metastore", "default"), HIVE, ids=[row[0] for row in HIVE])
def test_hives_names_and_defaults(hive, metastore, default):
    assert Settings().lookup(hive) == Settings().lookup(metastore) == default


def test_later_sources_win(tmp_path):
    yaml = tmp_path / "metastore.yaml"
    yaml.write_text("hive:\n  txn: {timeout: 10s, max.open.batch: 7}\nhive.compactor.initiator.on: false\n"
                    "metastore.compactor.worker.pools: [a, b]\n")
    xml = tmp_path / "hive-site.xml"
    xml.write_text("<?xml version='1.0'?><configuration><property><name>hive.txn.timeout</name><value>20s</value></property>"
                   "<property><name>hive.max.open.txns</name><value> 5 </value><final>true</final></property></configuration>")

    settings = build([
        sources.file(yaml), sources.file(xml), sources.environment({"METASTORE_CONF_METASTORE_MAX_OPEN_TXNS": "6", "HOME": "/"}),
        sources.command_line(["metastore.txn.timeout=1m", "metastore.txn.timeout=2m"])])

    assert settings.txns.timeout == timedelta(minutes=2)
    assert settings.txns.max_open_txns == 6
    assert settings.txns.max_open_batch == 7
    assert not settings.compaction.initiator_on
    assert settings.compaction.worker_pools == ("a", "b")
    shown = {row.key: (row.value, row.source) for row in settings.shown()}
    assert shown["hive.txn.timeout"] == ("120s", "--set")
    assert shown["hive.max.open.txns"] == ("6", "environment")
    assert shown["hive.txn.max.open.batch"] == ("7", str(yaml))
    assert shown["hive.repl.txn.timeout"] == ("11d", "default")


def test_hives_keys_for_each_pool_of_workers_are_read(tmp_path):
    xml = tmp_path / "hive-site.xml"
    xml.write_text("<configuration>" + "".join(
        f"<property><name>{name}</name><value>{value}</value></property>" for name, value in [
            ("hive.compactor.worker.threads", "5"), ("hive.compactor.worker.etl.threads", "2"), ("metastore.compactor.worker.etl.threads", "2"),
            ("metastore.compactor.worker.a-b.threads", "1")])
        + "</configuration>")

    settings = build([sources.file(xml)]).compaction

    assert (settings.worker_threads, settings.pool_threads) == (5, (("etl", 2), ("a-b", 1)))
    later = build([sources.file(xml), sources.command_line(["metastore.compactor.worker.threads.by.pool=x=1, y=0"])])
    assert later.compaction.pool_threads == (("x", 1), ("y", 0))
    assert later.lookup("metastore.compactor.worker.threads.by.pool") == "x=1,y=0"


@pytest.mark.parametrize(("assignment", "sentence"), [
    ("hive.compactor.worker.etl.threads=two", r"threads.by.pool = 'etl=two' .* names with whole numbers separated by commas"),
    ("metastore.compactor.worker.threads.by.pool==3", r"'=3' .* names with whole numbers"),
    ("hive.txn.timout=1s", r"hive.txn.timout = '1s' \(--set\) is not a setting. The closest is hive.txn.timeout, which expects a"),
    ("hive.txn.timeout=soon", r"hive.txn.timeout = 'soon' \(--set\) is not valid: expected a number with a unit .*300s"),
    ("metastore.port=70000", r"metastore.port = '70000' .* at least 0 and at most 65535"),
    ("qwertz=1", r"qwertz = '1' .* is not a setting; `metastore config show` lists them all"),
    ("hive.txn.timeout", "expected KEY=VALUE"),
    ("metastore.database.url=postgresql:/u:secret@h", r"metastore.database.url = \*+ .* PostgreSQL is the only database"),
    ("metastore.database.pasword=secret", r"metastore.database.pasword = \*+ .* The closest is metastore.database.password"),
], ids=lambda text: text.split("=", maxsplit=1)[0])
def test_wrong_settings_are_explained(assignment, sentence):
    with pytest.raises(InvalidInputError, match=sentence) as refused:
        build([sources.command_line([assignment])])
    assert "secret" not in str(refused.value)


def test_unknown_keys_of_the_environment_and_yaml_stop_the_start(tmp_path):
    yaml = tmp_path / "m.yml"
    yaml.write_text("hive.txn.timout: 1s")
    for source in (sources.file(yaml), sources.environment({"METASTORE_CONF_HIVE_TXN_TIMOUT": "1s"})):
        with pytest.raises(InvalidInputError, match="is not a setting"):
            build([source])
    build([sources.environment({"METASTORE_PORT": "tcp://10.0.0.1:9083", "METASTORE_URI": "thrift://x:1"})])


def test_a_hive_site_may_hold_foreign_keys_but_no_bad_values():
    foreign = SettingsSource("hive-site.xml", {"hive.exec.parallel": "true", "fs.s3a.secret.key": "abc"}, foreign=True)
    settings = build([foreign])

    assert settings.lookup("hive.exec.parallel") == "true"
    with pytest.raises(ConfigValueSecurityError):
        settings.lookup("fs.s3a.secret.key")
    with pytest.raises(InvalidInputError, match="hive.txn.timeout"):
        build([SettingsSource("hive-site.xml", {"hive.txn.timeout": "x"}, foreign=True)])


def test_one_setting_in_two_spellings_of_one_source():
    with pytest.raises(InvalidInputError, match="twice, as hive.txn.timeout and as metastore.txn.timeout"):
        build([sources.command_line(["hive.txn.timeout=1s", "metastore.txn.timeout=2s"])])
    build([sources.command_line(["hive.txn.timeout=1s", "metastore.txn.timeout=1s"])])


def test_secrets_are_told_to_nobody():
    settings = build([sources.command_line(["javax.jdo.option.ConnectionPassword=hush", "metastore.database.url=postgresql://u:p@h/d"])])

    assert all("hush" not in row.value and ":p@" not in row.value for row in settings.shown())
    assert {row.value for row in settings.shown() if row.key == "metastore.database.password"} == {MASK}
    for name in ("metastore.database.password", "javax.jdo.option.ConnectionPassword", "metastore.database.url"):
        with pytest.raises(ConfigValueSecurityError):
            settings.lookup(name)


def test_nobody_changes_settings():
    with pytest.raises(dataclasses.FrozenInstanceError):
        Settings().txns.timeout = timedelta(0)


@pytest.mark.parametrize(("url", "user", "password", "full"), [
    ("postgresql://h/d", "hive", "p@ss:w/rd", "postgresql://hive:p%40ss%3Aw%2Frd@h/d"), ("postgresql://h/d", "hive", "", "postgresql://hive@h/d"),
    ("postgresql://x:y@h/d", "hive", "p", "postgresql://x:y@h/d"), ("postgresql://h/d", "", "p", "postgresql://h/d")])
def test_user_and_password_of_their_own_keys(url, user, password, full):
    assert DatabaseSettings(url, user, password).full_url == full


def test_a_directory_has_the_files_of_hadoop_and_hive_the_last_winning(tmp_path):
    for name, value in [("core-site.xml", "1"), ("hive-site.xml", "2"), ("metastore-site.xml", "3"), ("log4j2.xml", "4")]:
        (tmp_path / name).write_text(f"<configuration><property><name>hive.max.open.txns</name><value>{value}</value></property></configuration>")
    assert [Path(source.name).name for source in sources.files(tmp_path)] == ["core-site.xml", "hive-site.xml", "metastore-site.xml"]
    assert build(sources.files(tmp_path)).txns.max_open_txns == 3
    (tmp_path / "empty").mkdir()
    with pytest.raises(InvalidInputError, match=r"empty has no settings: expected some of core-site.xml, "):
        list(sources.files(tmp_path / "empty"))


def test_a_file_takes_in_others_as_hadoop_does(tmp_path):
    included = "<configuration><property name='hive.txn.timeout' value='7s'/><property><name>hive.max.open.txns</name><value>1</value></property></configuration>"
    (tmp_path / "more.xml").write_text(included)
    site = tmp_path / "core-site.xml"

    def written(inside):
        site.write_text(f"<configuration xmlns:xi='http://www.w3.org/2001/XInclude'>{inside}<property><name>hive.max.open.txns</name>"
                        "<value>2</value></property></configuration>")
        return sources.file(site).values

    assert written("<xi:include href='more.xml'/>") == {"hive.txn.timeout": "7s", "hive.max.open.txns": "2"}
    assert written("<xi:include href='none.xml'><xi:fallback/></xi:include>") == {"hive.max.open.txns": "2"}
    for name in ("none.xml", "core-site.xml", ""):
        with pytest.raises(InvalidInputError, match=r"core-site.xml includes .*, which is not there"):
            written(f"<xi:include href='{name}'/>")


@pytest.mark.parametrize(("text", "value"), [
    ("${a}/x", "1/x"), ("${b}", "1"), ("${c}", "own"), ("${env.SET}-${env:SET}", "s-s"), ("${env.NO}", "${env.NO}"), ("${env.NO-d}", "d"),
    ("${env.NO:-d:e}", "d:e"), ("${env.EMPTY-d}", ""), ("${env.EMPTY:-d}", "d"), ("${env.SET:-d}", "s"), ("${unknown.key}", "${unknown.key}"),
    ("${loop}", "${loop}"), ("${", "${"), ("$a {b}", "$a {b}")])
def test_hadoops_variables(text, value):
    """Hadoop itself gives these values (`Configuration.get`), over all of its files."""
    given = [SettingsSource("core-site.xml", {"a": "1", "b": "${a}", "loop": "${loop}", "c": "core"}, foreign=True),
             SettingsSource("hive-site.xml", {"x": text, "c": "own"}, foreign=True), SettingsSource("--set", {"y": "${a}"})]
    core, hive, ours = sources.expanded(given, {"SET": "s", "EMPTY": ""})
    assert hive.values["x"] == value
    assert (core.values["b"], ours.values["y"]) == ("1", "${a}")


BOMB = "<!DOCTYPE c [<!ENTITY a 'aaaaaaaaaa'><!ENTITY b '&a;&a;'>]><configuration/>"


@pytest.mark.parametrize(("name", "content", "sentence"), [
    ("a.xml", BOMB, "has a DOCTYPE"), ("a.xml", "<configuration>", "is not XML"), ("a.yaml", "a: [", "is not YAML"),
    ("a.yaml", "- a", "not a mapping"), ("a.toml", "", "of no known kind")])
def test_files_that_are_refused(tmp_path, name, content, sentence):
    path = tmp_path / name
    path.write_text(content)
    with pytest.raises(InvalidInputError, match=sentence):
        sources.file(path)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(InvalidInputError, match=r"nothing.xml cannot be read: No such file"):
        sources.file(tmp_path / "nothing.xml")


# Other keys of Hive's server (SET-1) and of its clients (SET-2), with their defaults
ALSO_HIVES = [
    ("hive.txn.opentxn.timeout", "1000ms"), ("hive.txn.use.minhistorylevel", "true"),
    ("hive.txn.use.minhistorywriteid", "true"), ("metastore.txn.use.minhistorywriteid", "true"),
    ("hive.txn.retryable.sqlex.regex", ""), ("metastore.acid.txn.cleaner.interval", "10s"),
    ("metastore.txn.store.impl", "org.apache.hadoop.hive.metastore.txn.CompactionTxnHandler"),
    ("metastore.transactional.event.listeners", "CatalogEventListener"), ("hive.create.as.acid", "false"), ("hive.writeset.reaper.interval", "60s"),
    ("hive.compactor.history.reaper.interval", "2m"), ("metastore.hmshandler.retry.attempts", "10"),
    ("metastore.hmshandler.retry.interval", "2000ms"), ("hive.hmshandler.retry.attempts", "10"),
    ("metastore.jdbc.max.batch.size", "1000"), ("hive.metastore.have.multiple.leaders", "false"),
    ("metastore.lock.numretries", "100"), ("hive.lock.numretries", "100"), ("metastore.lock.sleep.between.retries", "60s"),
    ("hive.compactor.max.num.delta", "500"), ("hive.metastore.compaction.housekeeper.interval", "300s"),
    ("hive.support.concurrency", "false"), ("hive.txn.manager", "org.apache.hadoop.hive.ql.lockmgr.DummyTxnManager"),
    ("hive.txn.strict.locking.mode", "true"), ("hive.txn.read.locks", "true"), ("hive.txn.nonacid.read.locks", "true"),
    ("hive.txn.xlock.iow", "true"), ("hive.txn.xlock.write", "true"), ("hive.txn.xlock.mergeinsert", "false"),
    ("hive.txn.xlock.ctas", "true"), ("hive.txn.readonly.enabled", "false"), ("hive.acid.lockless.reads.enabled", "false"),
    ("hive.txn.ext.locking.enabled", "false"), ("hive.txn.heartbeat.threadpool.size", "5"),
    ("hive.unlock.numretries", "10"), ("hive.txn.manager.dump.lock.state.on.acquire.timeout", "false"),
    ("hive.exec.dynamic.partition.mode", "strict"), ("iceberg.hive.lock-timeout-ms", "180000ms"),
    ("iceberg.hive.lock-check-min-wait-ms", "50ms"), ("iceberg.hive.lock-check-max-wait-ms", "5000ms"),
    ("iceberg.hive.lock-heartbeat-interval-ms", "60000ms")]


@pytest.mark.parametrize(("name", "default"), ALSO_HIVES, ids=[row[0] for row in ALSO_HIVES])
def test_every_key_of_hives_transactions_is_known(name, default):
    assert Settings().lookup(name) == default


def test_a_key_without_effect_says_why_and_every_other_has_a_reader():
    """Looks for the field's name in the program: a key that nobody reads must not promise anything."""
    program = "\n".join(path.read_text() for path in Path(metastore.__file__).parent.rglob("*.py")
                        if "thrift_gen" not in path.parts and path.name != "keys.py")
    settings = Path(metastore.__file__).with_name("config").joinpath("keys.py").read_text()
    for row in set(ROWS.values()):
        told_to_clients = row.concept in {"clients", "database"}  # read by key, and within the settings themselves
        read = re.search(rf"\.{row.attribute}\b", program) or re.search(rf"self\.{row.attribute}\b", settings)
        used = told_to_clients or read
        assert used or row.key.without_effect, row.key.name
        assert bool(row.key.help) != bool(row.key.without_effect), row.key.name


def test_a_key_without_effect_is_still_read_and_shown():
    settings = build([SettingsSource("--set", {"hive.txn.opentxn.timeout": "2s"})])
    [line] = [line for line in settings.shown() if line.key == "hive.txn.opentxn.timeout"]

    assert (line.value, line.source) == ("2000ms", "--set")
    assert line.effect.startswith("none: Transaction ids become visible in order")
    with pytest.raises(InvalidInputError, match="is not valid"):
        build([SettingsSource("--set", {"hive.txn.opentxn.timeout": "soon"})])
