"""The partition calls over a real PostgreSQL and a real directory, without a network: handlers called as the server does."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from metastore.catalog.model import Catalog, Database, Table, TableType
from metastore.catalog.rules.descriptors import normalised
from metastore.catalog.service.directories import Directories
from metastore.catalog.service.moves import DirectoryMoves
from metastore.catalog.service.partition_exchange import PartitionExchange
from metastore.catalog.service.partition_reads import PartitionReads
from metastore.catalog.service.partitions import PartitionService
from metastore.catalog.store import databases as database_store
from metastore.catalog.store import tables as table_store
from metastore.config import CatalogSettings
from metastore.db.engine import Database as Postgres
from metastore.files import Files
from metastore.ids import DatabaseName, TableName
from metastore.thrift_gen.hive_metastore import ttypes
from metastore.thrift_server.dispatch.call import Call
from metastore.thrift_server.handlers.partition_exchange import PartitionExchangeHandlers
from metastore.thrift_server.handlers.partition_reads import PartitionReadHandlers
from metastore.thrift_server.handlers.partitions import PartitionHandlers
from metastore.thrift_server.responses.streamed import InPieces
from tests.support.answers import decoded

SERDE = "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe"


@dataclass
class Rpc:
    """``rpc.get_partition(db, t, values)`` calls the handler of that name; helpers build what is sent."""

    db: Postgres
    warehouse: Path
    settings: CatalogSettings = field(default_factory=CatalogSettings)

    def __post_init__(self) -> None:
        files = Files()
        reads = PartitionReads(self.db, self.settings)
        self.moves = DirectoryMoves(self.db, files)
        changes = PartitionService(self.db, self.settings, Directories(files), self.moves)
        exchange = PartitionExchange(self.db, self.moves)
        self.handlers = (PartitionReadHandlers(reads), PartitionHandlers(changes), PartitionExchangeHandlers(exchange))

    def __getattr__(self, method: str) -> Callable[..., Any]:
        handler = next((found for handlers in self.handlers if (found := getattr(handlers, method, None))), None)
        if handler is None:
            raise AttributeError(method)

        def call(*args: Any) -> Any:
            answer = handler(Call(method, args, SimpleNamespace(user=None)), *args)  # type: ignore[arg-type]
            return decoded(method, answer) if isinstance(answer, InPieces) else answer

        return call

    def table(self, name: str = "t", keys: str = "yyyy mm dd", db: str = "d", type: str = TableType.MANAGED, **fields: Any) -> Path:
        """Create a table with these keys (``name`` or ``name:type``); where it is."""
        directory = self.warehouse / f"{db}.db" / name
        columns = [{"name": "id", "type": "int"}, {"name": "value", "type": "string"}]
        sd = normalised({"cols": columns, "serdeInfo": {"serializationLib": SERDE}})
        view = type == TableType.VIEW
        table = Table(TableName("hive", db, name), sd if view else {**sd, "location": f"file:{directory}"}, type, owner_type=1, partition_keys=[
            {"name": key.partition(":")[0], "type": key.partition(":")[2] or "string"} for key in keys.split()], **fields)
        with self.db.begin() as pg:
            if database_store.select_database(pg, table.name.database) is None:
                database_store.insert_database(pg, Database(DatabaseName("hive", db), f"file:{self.warehouse}/{db}.db"))
            assert table_store.insert_table(pg, table)
        if not view:
            directory.mkdir(parents=True)
        return directory

    def part(self, values: Sequence[str], table: str = "t", location: str | None = None, db: str = "d",
             **fields: Any) -> ttypes.Partition:
        """Return a partition as Spark sends it."""
        sd = ttypes.StorageDescriptor(
            cols=[ttypes.FieldSchema("id", "int", ""), ttypes.FieldSchema("value", "string", "")], location=location,
            serdeInfo=ttypes.SerDeInfo(serializationLib=SERDE, parameters={}), parameters={})
        return ttypes.Partition(**{"values": list(values), "dbName": db, "tableName": table, "sd": sd, "parameters": {}, **fields})

    def add(self, *rows: str, table: str = "t") -> None:
        """Add partitions given as ``1999/01/02``."""
        self.add_partitions([self.part(row.split("/"), table) for row in rows])

    def names(self, table: str = "t") -> list[str]:
        """Every partition's name."""
        return list(self.get_partition_names("d", table, -1))


@pytest.fixture(scope="session")
def shared_database(postgres: Any) -> Iterator[Postgres]:
    """One database for these tests: emptying it takes a tenth of the time that a new one takes."""
    with postgres.cloned() as url:
        opened = Postgres(url, pool_size=12)
        yield opened
        opened.close()


@pytest.fixture
def rpc(shared_database: Postgres, tmp_path: Path) -> Rpc:
    """Return the calls, over an empty catalog ``hive``."""
    with shared_database.begin() as pg:
        for name in ("tables", "databases", "catalogs", "directory_changes", "locks", "compaction_queue", "completed_txn_components"):
            pg.sql(f"DELETE FROM {name}")
        database_store.insert_catalog(pg, Catalog("hive", f"file:{tmp_path}"))
    return Rpc(shared_database, tmp_path)


@pytest.fixture
def p4(rpc: Rpc) -> Rpc:
    """Fixture P4 (CAT-Y1): A, B, C, D."""
    rpc.table()
    rpc.add("1999/01/02", "2009/02/10", "2017/10/26", "2017/11/27")
    return rpc
