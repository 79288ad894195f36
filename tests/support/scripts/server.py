"""A server as the world of a script: its Thrift calls, its clock, its house-keeper, and what its tables hold."""

from contextlib import contextmanager
from itertools import cycle

from metastore.compaction.cleaning import store as cleaning_store
from metastore.compaction.cleaning.rules import Covered
from metastore.compaction.queue.store import components
from metastore.config import TxnSettings
from metastore.housekeeping.service import PurgeService
from metastore.loops.reaper import EXPIRY, PURGES, TXN_RECORDS, Reaper
from metastore.thrift_server.dispatch import middleware
from tests.support.able import AbleClient
from tests.support.model.state import EPOCH_MS
from tests.support.transactions import EMPTY

# Time stands still unless a script says otherwise, so that instants can be compared.
FROZEN_CLOCK = f"""CREATE OR REPLACE FUNCTION metastore_now() RETURNS timestamptz LANGUAGE sql STABLE
    AS 'SELECT to_timestamp({EPOCH_MS // 1000}) + (SELECT ahead FROM test_clock)'"""

RESET = EMPTY.replace('DELETE FROM "catalogs"; ', "")
_PLACE = "concat_ws('/', db, nullif(\"table\", ''), nullif(partition, ''))"

# What nobody is told over the wire, in one statement.
STORED = f"""
SELECT 'components', txn_id, {_PLACE}, to_jsonb(operation), to_jsonb(write_id) FROM txn_components
UNION ALL SELECT 'completed', txn_id, {_PLACE}, to_jsonb(write_id), to_jsonb(update_delete) FROM completed_txn_components
UNION ALL SELECT 'writes', txn_id, {_PLACE}, to_jsonb(commit_id), to_jsonb(operation) FROM write_sets"""


class Server:
    """What the model is, for real; unknown attributes are Thrift calls, made by one client after the other."""

    beginning = EPOCH_MS

    def __init__(self, clients, database):
        self.client, self.types, self.database = clients[0], clients[0].types, database
        self.clients = cycle(clients)
        self.purges = PurgeService(database, TxnSettings())
        self.stored = {}

    def __getattr__(self, name):
        self.stored = {}
        return getattr(next(self.clients), name)

    def reset(self):
        """Reset the world to its state after the migrations."""
        self.stored = {}
        self.database.once(RESET)

    def advance(self, delta):
        self.database.once("UPDATE test_clock SET ahead = ahead + %s", [delta])

    def expire(self):
        self._tick(EXPIRY)

    def purge(self):
        self._tick(PURGES + TXN_RECORDS)

    def clean(self):
        with self.database.begin() as pg:
            for aborted in components.select_aborted(pg, 10_000, cleaned=False):
                page = cleaning_store.select_aborted(pg, aborted.entity, None, None)
                cleaning_store.delete_aborted(pg, aborted.entity, page, None, (), Covered())
        self.stored = {}

    def components(self):
        return self._rows("components")

    def completed_components(self):
        return self._rows("completed")

    def writes(self):
        return self._rows("writes")

    def abort_code(self, txn_id):
        [(code,)] = self.database.once("SELECT abort_code FROM txns WHERE id = %s", [txn_id])
        return code

    def compactions(self):
        return self.database.once(f"SELECT {_PLACE}, type, state FROM compaction_queue ORDER BY id")

    def make(self, where, parameters=None):
        """Create a database, a table or a partition."""
        types = self.types
        if not where.table:
            self.client.create_database(types.Database(name=where.db, parameters=parameters or {}))
        elif not where.partition:
            self.client.create_table(types.Table(
                dbName=where.db, tableName=where.table, owner="u", tableType="MANAGED_TABLE", sd=self._storage(),
                partitionKeys=[types.FieldSchema("p", "string")], parameters=dict(parameters or {})))
        else:
            self.client.add_partition(types.Partition(
                dbName=where.db, tableName=where.table, values=[where.partition.split("=")[1]], sd=self._storage(),
                parameters=dict(parameters or {})))

    def drop(self, where):
        if where.partition:
            self.client.drop_partition_by_name(where.db, where.table, where.partition, True)
        elif where.table:
            self.client.drop_table(where.db, where.table, True)
        else:
            self.client.drop_database(where.db, True, True)

    def rename(self, where, name):
        table = self.client.get_table(where.db, where.table)
        table.tableName = name
        self.client.alter_table(where.db, where.table, table)

    def table_id(self, where):
        return self.client.get_table(where.db, where.table).id

    def parameter(self, where, key):
        if where.partition:
            partition = self.client.get_partition_by_name(where.db, where.table, where.partition)
        elif where.table:
            partition = self.client.get_table(where.db, where.table)
        else:
            partition = self.client.get_database(where.db)
        return (partition.parameters or {}).get(key)

    def _storage(self):
        serde = self.types.SerDeInfo("orc", "org.apache.hadoop.hive.ql.io.orc.OrcSerde", {})
        return self.types.StorageDescriptor(
            cols=[self.types.FieldSchema("a", "int")], location=None, serdeInfo=serde,
            inputFormat="org.apache.hadoop.hive.ql.io.orc.OrcInputFormat",
            outputFormat="org.apache.hadoop.hive.ql.io.orc.OrcOutputFormat")

    def _rows(self, table):
        if not self.stored:
            self.stored = {"components": set(), "completed": set(), "writes": set()}
            for name, *row in self.database.once(STORED):
                self.stored[name].add(tuple(row))
        return self.stored[table]

    def _tick(self, steps):
        self.stored = {}
        report = Reaper(self.purges, steps).tick()
        assert not report.failed


@contextmanager
def served(url, warehouse, settings=None):
    """Serve a world over the database."""
    from metastore.app import App
    from metastore.config.settings import SettingsSource, build
    from metastore.db.engine import Database

    database = Database(url, pool_size=4)
    database.once(FROZEN_CLOCK)
    app = App(build([SettingsSource("test", {
        "metastore.database.url": url, "hive.metastore.thrift.bind.host": "127.0.0.1", "hive.metastore.port": "0",
        "metastore.http.port": "0", "hive.metastore.warehouse.dir": warehouse.as_uri(), "metastore.warehouse.roots": warehouse.parent.as_uri(),
        "metastore.lock.check.wait": "0ms", "metastore.database.pool.size": "8", **(settings or {})})]), loops=False)
    app.start()
    patience, middleware.PAUSES = middleware.PAUSES, 1  # a story's locks do not go while a call waits for them
    try:
        with AbleClient(app.thrift_uri) as client, AbleClient(app.thrift_uri) as other:
            yield Server([client, other], database)
    finally:
        middleware.PAUSES = patience
        app.stop()
        database.close()
