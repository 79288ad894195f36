"""The calls whose cost is counted (`benchmarks.call_counts`), each with its preparation.

A case prepares its state, uncounted, and gives the arguments of its call, which is the first word of its name.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from metastore.client import MetastoreClient
from metastore.client.domain_client import table_request
from metastore.thrift_gen.hive_metastore import ttypes

FEW, MANY = 100, 600
"""The partitions of ``lake.few``, which is answered in one piece, and of ``lake.many``, which is not."""
_BATCH = 200
_LONG = 120
"""The length of the path of ``lake``, so that bytes are the same in any directory."""
_DAYS = 10
_SERDE = "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe"
_UPDATE, _INSERT, _SELECT = (
    ttypes.DataOperationType.UPDATE,
    ttypes.DataOperationType.INSERT,
    ttypes.DataOperationType.SELECT,
)


class World:
    """The world of the cases: transactions and locks that `clear` ends, and a database ``lake``."""

    def __init__(self, client: MetastoreClient) -> None:
        self.client = client
        self._number = 0

    def fill(self, place: Path, many: int = MANY) -> None:
        """Create ``lake`` below a directory; ``many``: partitions of its largest table."""
        self._place = (place / "x".ljust(_LONG - len(str(place)), "x")).as_uri()
        self.client.create_database(ttypes.Database("lake", locationUri=f"{self._place}/lake"))
        for name in ("few", "many", "grown"):
            self.client.create_table(self.table(name))
        self.client.create_table(self.table("plain", keys=()))
        self.client.add_partitions(self.partitions("few", range(FEW)))
        if many:
            self.client.add_partitions(self.partitions("many", range(many)))
        long = ttypes.ColumnStatisticsData(longStats=ttypes.LongColumnStatsData(numNulls=1, numDVs=2))
        objects = [ttypes.ColumnStatisticsObj(f"column_{n}", "string", long) for n in range(3)]
        about = ttypes.ColumnStatisticsDesc(isTblLevel=True, dbName="lake", tableName="plain")
        self.client.update_table_column_statistics(ttypes.ColumnStatistics(about, objects))
        each = [
            ttypes.ColumnStatistics(
                ttypes.ColumnStatisticsDesc(isTblLevel=False, dbName="lake", tableName="few", partName=name), objects
            )
            for name in self.names(range(FEW))
        ]
        self.client.set_aggr_stats_for(ttypes.SetPartitionsStatsRequest(each, engine="hive"))

    def clear(self) -> None:
        """End the transactions and locks of cases; aborted transactions would stay in other cases' answers."""
        for txn in self.client.get_open_txns_info().open_txns:
            if txn.state == ttypes.TxnState.OPEN:
                self.client.commit_txn(ttypes.CommitTxnRequest(txnid=txn.id))
        for lock in self.client.show_locks(ttypes.ShowLocksRequest()).locks:
            self.client.unlock(ttypes.UnlockRequest(lockid=lock.lockid))

    def fresh(self) -> int:
        """Return a number that no case has used."""
        self._number += 1
        return self._number

    def begun(self, size: int = 1, **more: Any) -> list[int]:
        """Open ``size`` transactions and return their ids."""
        return list(
            self.client.open_txns(ttypes.OpenTxnRequest(num_txns=size, user="ann", hostname="h1", **more)).txn_ids
        )

    def writer(self, operation: int = _UPDATE) -> int:
        """Open a transaction with a write id and two locks; beside it an open reader, behind it a commit."""
        [older] = self.begun()
        self.client.allocate_table_write_ids(allocation(older))
        self.client.lock(wish(older, "p=1"))
        self.client.commit_txn(ttypes.CommitTxnRequest(txnid=older))
        [reader] = self.begun(txn_type=ttypes.TxnType.READ_ONLY)
        self.client.lock(reading(reader))
        [txn_id] = self.begun()
        self.client.allocate_table_write_ids(allocation(txn_id))
        self.client.lock(wish(txn_id, "p=1", "p=2", operation=operation))
        return txn_id

    def held(self) -> int:
        """Take a lock without a transaction, or queue behind one."""
        lock_id: int = self.client.lock(exclusive()).lockid
        return lock_id

    def released(self) -> int:
        """Return a request that waited for a lock; that lock is released."""
        first, second = self.held(), self.held()
        self.client.unlock(ttypes.UnlockRequest(lockid=first))
        return second

    def listed(self, **more: Any) -> ttypes.GetValidWriteIdsRequest:
        """Return a request for a table with an open write id."""
        self.client.allocate_table_write_ids(allocation(*self.begun()))
        return ttypes.GetValidWriteIdsRequest(fullTableNames=["db.t"], **more)

    def snapshot(self) -> str:
        """Open a transaction and return its list of valid transactions."""
        [txn_id] = self.begun()
        return f"{txn_id}:{txn_id}::"

    def table(self, name: str, keys: tuple[str, ...] = ("day", "n")) -> ttypes.Table:
        """Return an external table, partitioned by ``keys``."""
        return ttypes.Table(
            name,
            "lake",
            "ann",
            sd=self._descriptor(name),
            parameters={"EXTERNAL": "TRUE"},
            partitionKeys=[ttypes.FieldSchema(key, "string", "") for key in keys],
            tableType="EXTERNAL_TABLE",
        )

    def created(self) -> str:
        """Create a table without partitions and return its name."""
        name = f"t{self.fresh()}"
        self.client.create_table(self.table(name, keys=()))
        return name

    def partitions(self, table: str, numbers: range) -> list[ttypes.Partition]:
        """Return the partitions of these numbers."""
        return [
            ttypes.Partition(
                [f"d{n % _DAYS}", str(n)],
                "lake",
                table,
                1732333333,
                0,
                self._descriptor(f"{table}/{n}"),
                {"numFiles": "1", "totalSize": "12345", "transient_lastDdlTime": "1732333333"},
            )
            for n in numbers
        ]

    def numbers(self) -> range:
        """Return the numbers of a batch of new partitions for ``lake.grown``."""
        start = 100_000 + _BATCH * self.fresh()
        return range(start, start + _BATCH)

    def grown(self) -> range:
        """Add a batch of partitions to ``lake.grown``, and return their numbers."""
        numbers = self.numbers()
        self.client.add_partitions(self.partitions("grown", numbers))
        return numbers

    @staticmethod
    def names(numbers: range) -> list[str]:
        """Return the names of the partitions of these numbers."""
        return [f"day=d{n % _DAYS}/n={n}" for n in numbers]

    def _descriptor(self, path: str) -> ttypes.StorageDescriptor:
        return ttypes.StorageDescriptor(
            cols=[ttypes.FieldSchema(f"column_{n}", "string", "") for n in range(20)],
            location=f"{self._place}/lake/{path}",
            inputFormat="org.apache.hadoop.mapred.TextInputFormat",
            outputFormat="org.apache.hadoop.hive.ql.io.HiveIgnoreKeyTextOutputFormat",
            numBuckets=-1,
            serdeInfo=ttypes.SerDeInfo("t", _SERDE, {"serialization.format": "1"}),
            bucketCols=[],
            sortCols=[],
            parameters={},
        )


def allocation(*txn_ids: int, table: str = "t") -> ttypes.AllocateTableWriteIdsRequest:
    """Return a request for a write id for each transaction."""
    return ttypes.AllocateTableWriteIdsRequest(dbName="db", tableName=table, txnIds=list(txn_ids))


def wish(
    txn_id: int, *partitions: str, operation: int = _UPDATE, kind: int = ttypes.LockType.SHARED_WRITE
) -> ttypes.LockRequest:
    """Return a request for locks of these partitions."""
    return ttypes.LockRequest(
        txnid=txn_id,
        user="ann",
        hostname="h1",
        component=[
            ttypes.LockComponent(
                type=kind,
                level=ttypes.LockLevel.PARTITION,
                dbname="db",
                tablename="t",
                partitionname=partition,
                operationType=operation,
                isTransactional=True,
            )
            for partition in partitions
        ],
    )


def reading(txn_id: int) -> ttypes.LockRequest:
    """Return a request for a shared lock of one partition."""
    return wish(txn_id, "p=1", operation=_SELECT, kind=ttypes.LockType.SHARED_READ)


def exclusive() -> ttypes.LockRequest:
    """Return a request for an exclusive lock without a transaction."""
    return wish(0, "p=1", kind=ttypes.LockType.EXCLUSIVE)


def _commit(txn_id: int, **more: Any) -> list[Any]:
    return [ttypes.CommitTxnRequest(txnid=txn_id, **more)]


CASES: dict[str, Callable[[World], list[Any]]] = {
    "open_txns": lambda _: [ttypes.OpenTxnRequest(num_txns=5, user="ann", hostname="h1")],
    "commit_txn of one that wrote nothing": lambda world: _commit(*world.begun()),
    "commit_txn of an insert": lambda world: _commit(world.writer(_INSERT)),
    "commit_txn of an update": lambda world: _commit(world.writer()),
    "commit_txn of an exclusive writer": lambda world: _commit(world.writer(), exclWriteEnabled=True),
    "abort_txn": lambda world: [ttypes.AbortTxnRequest(txnid=world.writer())],
    "abort_txns of 3": lambda world: [ttypes.AbortTxnsRequest(txn_ids=world.begun(3))],
    "lock of a reader": lambda world: [reading(*world.begun())],
    "lock of a writer": lambda world: [wish(*world.begun(), "p=1", "p=2")],
    "lock without a transaction": lambda _: [exclusive()],
    "lock that must wait": lambda world: [world.held() and exclusive()],
    "lock that must wait behind others": lambda world: [world.held() and world.held() and exclusive()],
    "check_lock of one that is held": lambda world: [ttypes.CheckLockRequest(lockid=world.held())],
    "check_lock of one that still waits": lambda world: [ttypes.CheckLockRequest(lockid=world.held() and world.held())],
    "check_lock of one that is free now": lambda world: [ttypes.CheckLockRequest(lockid=world.released())],
    "unlock": lambda world: [ttypes.UnlockRequest(lockid=world.held())],
    "unlock of one that another waits for": lambda world: [
        ttypes.UnlockRequest(lockid=(world.held(), world.held())[0])
    ],
    "heartbeat": lambda world: [ttypes.HeartbeatRequest(txnid=world.writer())],
    "heartbeat of a lock": lambda world: [ttypes.HeartbeatRequest(lockid=world.held())],
    "heartbeat_txn_range": lambda world: [ttypes.HeartbeatTxnRangeRequest(*world.begun(2))],
    "allocate_table_write_ids of a new table": lambda world: [allocation(*world.begun(3), table=f"new{world.fresh()}")],
    "allocate_table_write_ids": lambda world: [allocation(*world.begun())],
    "allocate_table_write_ids again": lambda world: [allocation(world.writer())],
    "add_dynamic_partitions": lambda world: [
        ttypes.AddDynamicPartitions(
            txnid=world.writer(), writeid=2, dbname="db", tablename="t", partitionnames=["p=3"], operationType=_INSERT
        )
    ],
    "get_valid_write_ids": lambda world: [world.listed()],
    "get_valid_write_ids by transactions": lambda world: [world.listed(validTxnList=world.snapshot())],
    "get_valid_write_ids by write id": lambda world: [world.listed(writeId=1)],
    "get_open_txns": lambda _: [],
    "get_open_txns_req": lambda _: [ttypes.GetOpenTxnsRequest()],
    "get_open_txns_info of 100": lambda world: world.begun(100) and [],
    "show_locks": lambda world: world.writer() and [ttypes.ShowLocksRequest()],
    "show_compact": lambda _: [ttypes.ShowCompactRequest()],
    "get_current_notificationEventId": lambda _: [],
    "get_next_notification": lambda _: [ttypes.NotificationEventRequest(lastEvent=0, maxEvents=100)],
    "get_database": lambda _: ["lake"],
    "get_all_databases": lambda _: [],
    "get_table_req": lambda _: [table_request("lake", "plain")],
    "get_all_tables": lambda _: ["lake"],
    "get_tables": lambda _: ["lake", "*"],
    "get_table_meta": lambda _: ["lake", "*", None],
    "get_table_objects_by_name": lambda _: ["lake", ["few", "many", "grown", "plain"]],
    "get_table_objects_by_name_req by a pattern": lambda _: [ttypes.GetTablesRequest("lake", tablesPattern="*n*")],
    "get_table_objects_by_name_req of some fields": lambda _: [
        ttypes.GetTablesRequest("lake", tablesPattern="few", projectionSpec=ttypes.GetProjectionsSpec(["tableName"]))
    ],
    "create_table": lambda world: [world.table(f"t{world.fresh()}", keys=())],
    "alter_table": lambda world: ["lake", world.created(), world.table(f"t{world.fresh()}", keys=())],
    "drop_table": lambda world: ["lake", world.created(), False],
    "get_partition": lambda _: ["lake", "few", ["d1", "1"]],
    "get_partition_by_name": lambda _: ["lake", "few", "day=d1/n=1"],
    f"get_partitions of {FEW}": lambda _: ["lake", "few", -1],
    f"get_partitions of {MANY}": lambda _: ["lake", "many", -1],
    f"get_partitions_with_auth of {FEW}": lambda _: ["lake", "few", -1, "ann", []],
    f"get_partitions_ps of {FEW // _DAYS}": lambda _: ["lake", "few", ["d1"], -1],
    f"get_partitions_by_names of {FEW}": lambda world: ["lake", "many", world.names(range(FEW))],
    f"get_partitions_by_filter of {FEW // _DAYS}": lambda _: ["lake", "few", 'day = "d1"', -1],
    f"get_partitions_by_expr of {FEW // _DAYS}": lambda _: [
        ttypes.PartitionsByExprRequest("lake", "few", b'day = "d1"', maxParts=-1)
    ],
    f"get_partition_names_req of {FEW // _DAYS}": lambda _: [
        ttypes.PartitionsByExprRequest("lake", "few", b'day = "d1"', maxParts=-1)
    ],
    f"get_partition_names of {MANY}": lambda _: ["lake", "many", -1],
    f"get_partition_names_ps of {FEW // _DAYS}": lambda _: ["lake", "few", ["d1"], -1],
    f"get_num_partitions_by_filter of {FEW // _DAYS}": lambda _: ["lake", "few", 'day = "d1"'],
    f"add_partitions of {_BATCH}": lambda world: [world.partitions("grown", world.numbers())],
    f"alter_partitions of {_BATCH}": lambda world: ["lake", "grown", world.partitions("grown", world.grown())],
    f"drop_partitions_req of {_BATCH}": lambda world: [
        ttypes.DropPartitionsRequest(
            "lake", "grown", ttypes.RequestPartsSpec(names=world.names(world.grown())), deleteData=False
        )
    ],
    "get_table_statistics_req": lambda _: [
        ttypes.TableStatsRequest("lake", "plain", [f"column_{n}" for n in range(3)])
    ],
    f"get_partitions_statistics_req of {FEW}": lambda world: [
        ttypes.PartitionsStatsRequest("lake", "few", ["column_0", "column_1"], world.names(range(FEW)))
    ],
}
