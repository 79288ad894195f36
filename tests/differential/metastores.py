"""Hive's own metastores 2.3.10 and 4.0.1, and ours, started for one run."""

import zipfile
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from benchmarks import hive
from benchmarks.peers import database as new_database
from metastore.app import App
from metastore.config.settings import SettingsSource, build
from metastore.telemetry import logs
from tests.differential.codec import Connection
from tests.interop.java import BUILT, fetched, java_home

POM = Path(__file__).with_name("pom.xml")
_SERVICES = "org.apache.hadoop.hive.metastore.txn.service"


@contextmanager
def hive_4_0(work, postgres_url, name="hive_4_0", **settings):
    """Run Hive's metastore 4.0.1, fetched with Maven, on a new database; give its address. ``settings``: with ``__`` for each dot."""
    jars, store = fetched(POM, "hive-4.0.1-metastore"), BUILT / "hive-schemas"
    hive.once(store / "scripts", lambda place: hive.fetch(hive.SCRIPTS, place))
    hive.once(store / "scripts-4", lambda place: hive.fetch(hive.SCRIPTS_4, place))
    with zipfile.ZipFile(next((store / "scripts-4").glob("*.jar"))) as jar:
        upgrade = jar.read(hive.SCHEMA_4_0).decode()
    url = new_database(postgres_url, name)
    hive.load(url, [hive.published(store / "scripts", hive.SCHEMA_3_1), (hive.HERE / "from_3_1_0.sql").read_text(), upgrade])
    tasks = ("AcidHouseKeeperService", "AcidTxnCleanerService")
    everything = {
        "metastore.warehouse.dir": f"file:{work}/warehouse", "metastore.warehouse.external.dir": f"file:{work}/warehouse",
        "metastore.event.db.notification.api.auth": "false", "metastore.hmshandler.retry.attempts": "1", "metastore.hmshandler.retry.interval": "1ms", "metastore.thrift.bind.host": "127.0.0.1",
        "metastore.compactor.initiator.on": "false", "metastore.compactor.cleaner.on": "false",
        "metastore.task.threads.remote": ",".join(f"{_SERVICES}.{task}" for task in tasks),
        **{key.replace("__", "."): value for key, value in settings.items()}}
    with hive.running(str(java_home(17) / "bin" / "java"), jars, "metastore-site.xml", everything, work, url) as (address, _):
        yield address


def address_of(uri):
    parts = urlsplit(uri)
    return parts.hostname, parts.port


class Asked:
    """One server under comparison: ``version``, its warehouse, a connection."""

    def __init__(self, version, address, work):
        self.version, self.work = version, str(work)
        self.connection = Connection(*address)
        self.known = {}
        """The ids that this server gave, by name: a call's ``{"$id": "txn"}`` stands for them."""


@contextmanager
def ours(work, database_url):
    """Run our server in this process; no loop runs."""
    work.mkdir(parents=True, exist_ok=True)
    logs.configure("error")
    app = App(build([SettingsSource("test", {
        "metastore.database.url": database_url, "hive.metastore.thrift.bind.host": "127.0.0.1", "hive.metastore.port": "0",
        "metastore.http.port": "0", "hive.metastore.warehouse.dir": f"file:{work}/warehouse", "metastore.database.pool.size": "12",
        "metastore.lock.check.wait": "0", "metastore.warehouse.roots": f"file:{work}"})]), loops=False)
    app.start()
    asked = Asked("ours", address_of(app.thrift_uri), work)
    try:
        yield asked
    finally:
        asked.connection.close()
        app.stop()


@contextmanager
def real_2_3(work, postgres_url):
    """Run Hive's metastore 2.3.10 on PostgreSQL: its compactions wait for themselves on Derby."""
    settings = {"hive.hmshandler.retry.attempts": "1", "hive.hmshandler.retry.interval": "1ms"}
    with hive.hive_2_3(work, new_database(postgres_url, "hive_2_3"), settings) as (address, _):
        yield Asked("2.3.10", address, work)


@contextmanager
def real_4_0(work, postgres_url):
    with hive_4_0(work, postgres_url) as address:
        yield Asked("4.0.1", address, work)
