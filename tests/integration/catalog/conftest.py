"""The catalog over Thrift: a server with its handlers alone, over a fresh database and a warehouse of its own."""

import pytest

from metastore.catalog.rare.service import RareService
from metastore.catalog.service.constraints import ConstraintService
from metastore.catalog.service.databases import DatabaseService
from metastore.catalog.service.directories import Directories
from metastore.catalog.service.functions import FunctionService
from metastore.catalog.service.moves import DirectoryMoves
from metastore.catalog.service.partition_reads import PartitionReads
from metastore.catalog.service.partitions import PartitionService
from metastore.catalog.service.statistics import StatisticsService
from metastore.catalog.service.table_reads import TableReads
from metastore.catalog.service.tables import TableService
from metastore.client import MetastoreClient
from metastore.config import AbilitySettings, CatalogSettings, RareSettings
from metastore.files import Files
from metastore.telemetry.tables import TableStats
from metastore.thrift_gen.hive_metastore import ttypes as T
from metastore.thrift_server.dispatch.table_access import TableAccess
from metastore.thrift_server.handlers.catalogs import CatalogHandlers
from metastore.thrift_server.handlers.constraints import ConstraintHandlers
from metastore.thrift_server.handlers.databases import DatabaseHandlers
from metastore.thrift_server.handlers.functions import FunctionHandlers
from metastore.thrift_server.handlers.partition_reads import PartitionReadHandlers
from metastore.thrift_server.handlers.partitions import PartitionHandlers
from metastore.thrift_server.handlers.rare import RareHandlers
from metastore.thrift_server.handlers.statistics import StatisticsHandlers
from metastore.thrift_server.handlers.table_reads import TableReadHandlers
from metastore.thrift_server.handlers.tables import TableHandlers
from tests.support.thrift_server import serving

ORC = {"inputFormat": "org.apache.hadoop.hive.ql.io.orc.OrcInputFormat",
       "outputFormat": "org.apache.hadoop.hive.ql.io.orc.OrcOutputFormat"}


OPEN = TableAccess(AbilitySettings(check=False), TableStats())
"""These tests say get_table as Hive 2.3 does, whose answers they know; who gets a table is test_who_gets_a_table.py's."""


class Hive:
    """``hive.get_table("d", "t")`` is a call over Thrift; what is sent is built by the helpers."""

    def __init__(self, client, warehouse, moves):
        self.client, self.warehouse, self.moves = client, warehouse, moves

    def __getattr__(self, method):
        return getattr(self.client, method)

    def database(self, name="d", **fields):
        self.create_database(T.Database(name=name, **fields))
        return self.get_database(f"@{fields.get('catalogName', 'hive')}#{name}")

    @staticmethod
    def sd(columns="id int, name string", **fields):
        pairs = [column.split(" ", 1) for column in columns.split(", ")] if columns else []
        fields.setdefault("serdeInfo", T.SerDeInfo())
        return T.StorageDescriptor(cols=[T.FieldSchema(*pair) for pair in pairs], **fields)

    def table(self, name="t", columns="id int, name string", db="d", keys="", sd=None, **fields):
        """Return a table for create_table; ``sd``: further fields of the descriptor."""
        keys = [T.FieldSchema(*key.split(":")) for key in keys.split()]
        return T.Table(tableName=name, dbName=db, sd=self.sd(columns, **(sd or {})), partitionKeys=keys, **fields)

    def create(self, name="t", columns="id int, name string", db="d", **fields):
        """Create a table and read it back."""
        self.create_table(self.table(name, columns, db, **fields))
        return self.get_table(db, name)

    def add(self, *values, db="d", table="t"):
        """Add a partition with the table's descriptor."""
        self.append_partition(db, table, list(values))

    def path(self, location):
        """Return the local path of a stored location."""
        assert location.startswith(f"file:{self.warehouse.parent}"), location
        return type(self.warehouse)(location.removeprefix("file:"))


class SetUgi:
    """The name that a client gives itself, as the server's own session handlers keep it."""

    def set_ugi(self, call, user, groups):
        call.connection.user, call.connection.groups = user, tuple(groups)
        return groups


@pytest.fixture
def catalog_settings(tmp_path):
    return CatalogSettings(warehouse=str(tmp_path / "wh"))


@pytest.fixture
def files():
    return Files()


@pytest.fixture
def hive(database, tmp_path, catalog_settings, files):
    directories, moves = Directories(files), DirectoryMoves(database, files, has_trash=bool(catalog_settings.trash_interval))
    databases = DatabaseService(database, catalog_settings, directories, moves)
    databases.ensure_default_objects()
    handlers = (
        SetUgi(), CatalogHandlers(databases), DatabaseHandlers(databases), FunctionHandlers(FunctionService(database)),
        TableHandlers(TableService(database, catalog_settings, directories, moves)),
        TableReadHandlers(TableReads(database), OPEN, StatisticsService(database)), StatisticsHandlers(StatisticsService(database)),
        ConstraintHandlers(ConstraintService(database)),
        PartitionHandlers(PartitionService(database, catalog_settings, directories, moves)),
        PartitionReadHandlers(PartitionReads(database, catalog_settings)), RareHandlers(RareService(database, RareSettings())))
    with serving(*handlers) as server, MetastoreClient("thrift://{}:{}".format(*server.address), user="ann") as client:
        yield Hive(client, tmp_path / "wh", moves)


@pytest.fixture
def d(hive):
    """``hive`` with a database ``d``."""
    hive.database()
    return hive
