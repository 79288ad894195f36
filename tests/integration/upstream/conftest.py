"""Two whole servers: the catalog's, and the one in front of it, each with a database of its own."""

import shutil

import pytest

from metastore.app import App
from metastore.config.settings import SettingsSource, build
from metastore.db.engine import Database
from metastore.thrift_gen.hive_metastore import ttypes as T
from tests.support.able import AbleClient
from tests.support.scripts.server import RESET
from tests.support.transactions import EMPTY


@pytest.fixture(scope="module")
def shared_url(postgres):
    """Yield the URL of the database of the server in front, which stays for a module."""
    with postgres.cloned() as url:
        yield url


@pytest.fixture
def database_url(shared_url):
    return shared_url


@pytest.fixture
def database(shared_url):
    """Yield a database that is emptied before each test."""
    opened = Database(shared_url, pool_size=12)
    opened.once(EMPTY)
    yield opened
    opened.close()


def settings(database_url, tmp_path, **more):
    return build([SettingsSource("test", {
        "metastore.database.url": database_url, "hive.metastore.port": "0", "metastore.http.port": "0",
        "hive.metastore.warehouse.dir": (tmp_path / "warehouse").as_uri(), "metastore.database.pool.size": "12",
        "metastore.lock.check.wait": "0", "metastore.warehouse.roots": tmp_path.as_uri(), **more})])


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Where the files are."""
    return tmp_path_factory.mktemp("upstream")


@pytest.fixture(scope="module")
def running_behind(postgres, place):
    with postgres.cloned() as url:
        app = App(settings(url, place), loops=False)
        app.start()
        yield app
        app.stop()


@pytest.fixture(scope="module")
def running_front(running_behind, shared_url, place):
    app = App(settings(shared_url, place, **{"metastore.upstream.uris": running_behind.thrift_uri}), loops=False)
    app.start()
    yield app
    app.stop()


@pytest.fixture
def behind(running_behind, place):
    """Empty the catalog of the server that has it, and return the server."""
    running_behind.database.once(RESET)
    shutil.rmtree(place / "warehouse", ignore_errors=True)
    return running_behind


@pytest.fixture
def front(running_front, behind, database):
    """Return the server that has the transactions, of which there are none."""
    return running_front


@pytest.fixture
def catalog(behind):
    """Yield a client of the catalog's server alone."""
    with AbleClient(behind.thrift_uri) as connected:
        yield connected


@pytest.fixture
def client(front):
    """Yield a client of the one address."""
    with AbleClient(front.thrift_uri, user="ann") as connected:
        yield connected


ACID = {"transactional": "true", "bucketing_version": "2"}


def table(name="t", db="d", keys="", **parameters):
    """Return a table to create: transactional unless told otherwise."""
    sd = T.StorageDescriptor(
        cols=[T.FieldSchema("id", "int"), T.FieldSchema("name", "string")], serdeInfo=T.SerDeInfo(
            serializationLib="org.apache.hadoop.hive.ql.io.orc.OrcSerde"),
        inputFormat="org.apache.hadoop.hive.ql.io.orc.OrcInputFormat",
        outputFormat="org.apache.hadoop.hive.ql.io.orc.OrcOutputFormat")
    keys = [T.FieldSchema(*key.split(":")) for key in keys.split()]
    return T.Table(tableName=name, dbName=db, sd=sd, partitionKeys=keys, parameters=parameters or ACID)


@pytest.fixture
def acid(client):
    """``d.t``, transactional, made through the one address."""
    client.create_database(T.Database(name="d"))
    client.create_table(table())
    return "d.t"


class Writing:
    """Transactions, as Hive's client makes them."""

    def __init__(self, client):
        self.client = client

    def open(self):
        return self.client.open_txns(T.OpenTxnRequest(1, "ann", "here")).txn_ids[0]

    def allocate(self, txn, name="t", db="d"):
        request = T.AllocateTableWriteIdsRequest(dbName=db, tableName=name, txnIds=[txn])
        return self.client.allocate_table_write_ids(request).txnToWriteIds[0].writeId

    def lock(self, txn, name="t", db="d", kind=T.LockType.SHARED_WRITE, operation=T.DataOperationType.UPDATE,
             partition=None):
        component = T.LockComponent(kind, T.LockLevel.TABLE, db, name, partition, operation, True)
        return self.client.lock(T.LockRequest([component], txn, "ann", "here"))

    def write(self, name="t", db="d", partition=None, commit=True):
        """(txn, write id) of a transaction that wrote."""
        txn = self.open()
        write_id = self.allocate(txn, name, db)
        self.lock(txn, name, db, partition=partition)
        if commit:
            self.client.commit_txn(T.CommitTxnRequest(txn))
        return txn, write_id

    def valid(self, name="t", db="d"):
        """(high-water mark, invalid ids, those of them that were aborted)."""
        [found] = self.client.get_valid_write_ids(T.GetValidWriteIdsRequest([f"{db}.{name}"])).tblValidWriteIds
        return found.writeIdHighWaterMark, list(found.invalidWriteIds)


@pytest.fixture
def writing(client):
    return Writing(client)
