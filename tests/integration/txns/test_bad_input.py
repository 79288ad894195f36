"""Whatever a field of a request holds, the client gets a declared exception or a sentence, and nothing is half done.

The bad values come from the field tables of the generated structs: one field at a time, everything else as it should be.
"""

import copy
import re
from functools import reduce

import pytest
from thrift.protocol.TBase import TExceptionBase
from thrift.Thrift import TApplicationException, TType

from metastore.app import App
from metastore.client import MetastoreClient
from metastore.config.settings import SettingsSource, build
from metastore.thrift_gen.hive_metastore import ThriftHiveMetastore, ttypes
from tests.support.transactions import EMPTY

SMALLEST, LARGEST = -2**63, 2**63 - 1
MANY = 100_000
LONG = "x" * 10_000_000
UNKNOWN = 987_654_321
ENUMS = {"txn_type", "type", "level", "operationType"}
ANSWERED = {TApplicationException.INTERNAL_ERROR, TApplicationException.PROTOCOL_ERROR}

TABLES = ("txn_components", "completed_txn_components", "write_sets", "next_write_ids", "txn_write_ids",
          "repl_txn_map", "min_history", "materialization_locks", "write_events", "compaction_queue", "databases", "tables")


def component(**more):
    return ttypes.LockComponent(**{
        "type": ttypes.LockType.SHARED_READ, "level": ttypes.LockLevel.TABLE, "dbname": "db", "tablename": "t",
        "partitionname": "p=1", "operationType": ttypes.DataOperationType.INSERT, "isTransactional": True, **more})


# Every call as it should be; a function of an open transaction and of a lock request that is granted.
CALLS = {
    "open_txns": lambda txn, lock: [ttypes.OpenTxnRequest(1, "ann", "h1", "agent", txn_type=ttypes.TxnType.DEFAULT)],
    "open_txns replayed": lambda txn, lock: [ttypes.OpenTxnRequest(
        1, "ann", "h1", "agent", replPolicy="p.*", replSrcTxnIds=[txn * 1000], txn_type=ttypes.TxnType.REPL_CREATED)],
    "abort_txn": lambda txn, lock: [ttypes.AbortTxnRequest(txn, txn_type=ttypes.TxnType.DEFAULT, errorCode=50005)],
    "abort_txn replayed": lambda txn, lock: [ttypes.AbortTxnRequest(
        txn, replPolicy="p.*", txn_type=ttypes.TxnType.REPL_CREATED)],
    "abort_txns": lambda txn, lock: [ttypes.AbortTxnsRequest([txn], errorCode=50005)],
    "commit_txn": lambda txn, lock: [ttypes.CommitTxnRequest(
        txn, exclWriteEnabled=False, txn_type=ttypes.TxnType.DEFAULT)],
    "commit_txn replayed": lambda txn, lock: [ttypes.CommitTxnRequest(
        txn, replPolicy="p.*", txn_type=ttypes.TxnType.REPL_CREATED,
        writeEventInfos=[ttypes.WriteEventInfo(1, "db", "t", "files", "p=1")],
        replLastIdInfo=ttypes.ReplLastIdInfo("default", 5, "t", "hive", ["p=1"]))],
    "commit_txn with a parameter": lambda txn, lock: [ttypes.CommitTxnRequest(
        txn, keyValue=ttypes.CommitTxnKeyValue(1, "_meta.x", "1"))],
    "heartbeat": lambda txn, lock: [ttypes.HeartbeatRequest(lock, txn)],
    "heartbeat_txn_range": lambda txn, lock: [ttypes.HeartbeatTxnRangeRequest(txn, txn)],
    "get_open_txns_req": lambda txn, lock: [ttypes.GetOpenTxnsRequest([ttypes.TxnType.READ_ONLY])],
    "get_valid_write_ids": lambda txn, lock: [ttypes.GetValidWriteIdsRequest(["db.t"], "3:2:2:")],
    "get_valid_write_ids by id": lambda txn, lock: [ttypes.GetValidWriteIdsRequest(["db.t"], None, 1)],
    "allocate_table_write_ids": lambda txn, lock: [ttypes.AllocateTableWriteIdsRequest("db", "t", [txn])],
    "allocate_table_write_ids replayed": lambda txn, lock: [ttypes.AllocateTableWriteIdsRequest(
        "db", "t", None, "p.*", [ttypes.TxnToWriteId(txn * 1000, 7)])],
    "get_max_allocated_table_write_id": lambda txn, lock: [ttypes.MaxAllocatedTableWriteIdRequest("db", "t")],
    "seed_write_id": lambda txn, lock: [ttypes.SeedTableWriteIdsRequest("db", f"seeded{txn}", 5)],
    "seed_txn_id": lambda txn, lock: [ttypes.SeedTxnIdRequest(txn + 10)],
    "repl_tbl_writeid_state": lambda txn, lock: [ttypes.ReplTblWriteIdStateRequest(
        f"db.r{txn}:10:7:7:3", "ann", "h1", "db", f"r{txn}", ["p=1"])],
    "add_write_ids_to_min_history": lambda txn, lock: [txn, {"db.t": 1}],
    "get_latest_txnid_in_conflict": lambda txn, lock: [txn],
    "add_dynamic_partitions": lambda txn, lock: [ttypes.AddDynamicPartitions(
        txn, 1, "db", "t", ["p=1"], ttypes.DataOperationType.INSERT)],
    "add_write_notification_log": lambda txn, lock: [ttypes.WriteNotificationLogRequest(
        txn, 1, "db", "t", ttypes.InsertEventRequestData(False, ["file:/x"], ["1f"], ["delta_1_1"], ["1"]), ["1"])],
    "add_write_notification_log_in_batch": lambda txn, lock: [ttypes.WriteNotificationLogBatchRequest(
        "hive", "db", "t", [ttypes.WriteNotificationLogRequest(
            txn, 1, "db", "t", ttypes.InsertEventRequestData(False, ["file:/x"]), ["1"])])],
    "get_all_write_event_info": lambda txn, lock: [ttypes.GetAllWriteEventInfoRequest(txn, "db", "t")],
    "lock": lambda txn, lock: [ttypes.LockRequest([component()], txn, "ann", "h1", "agent")],
    "check_lock": lambda txn, lock: [ttypes.CheckLockRequest(lock, txn, 5)],
    "unlock": lambda txn, lock: [ttypes.UnlockRequest(lock)],
    "show_locks": lambda txn, lock: [ttypes.ShowLocksRequest("db", "t", "p=1", False, txn)],
    "get_lock_materialization_rebuild": lambda txn, lock: ["db", f"v{txn}", txn],
    "heartbeat_lock_materialization_rebuild": lambda txn, lock: ["db", "v", txn],
    "get_materialization_invalidation_info": lambda txn, lock: [
        ttypes.CreationMetadata("hive", "db", "v", {"db.t"}, f"{txn}$db.t:1:{LARGEST}::"), f"{txn}:{LARGEST}::"],
}


def bad_values(entry, value=None):
    """Bad values for a field, by its type; ``value``: a good one."""
    _, kind, name, arguments, _ = entry
    if kind in {TType.I64, TType.I32}:
        least, most = (SMALLEST, LARGEST) if kind == TType.I64 else (-2**31, 2**31 - 1)
        return [None, 0, -1, least, most, *([99] if name in ENUMS else [UNKNOWN])]
    if kind == TType.STRING:
        return [None, "", "@cat#db", "@cat#", "a\0b", "not a name: /=%#\n", "é☃𝄞", LONG]
    if kind == TType.BOOL:
        return [None]
    if kind in {TType.LIST, TType.SET}:
        item_kind = arguments[0]
        if item_kind == TType.STRING:
            many = [f"p={number}" for number in range(MANY // 100)]
            lists = [[], ["a\0b"], ["@cat#db"], [LONG], [""], ["same", "same"], many]
        elif item_kind in {TType.I64, TType.I32}:
            lists = [[], [-1], [0], [LARGEST if item_kind == TType.I64 else 2**31 - 1], [99], [5, 5], [UNKNOWN + number for number in range(MANY)]]
        else:
            lists = [[], [value[0]] * 2, [value[0]] * (MANY if name == "component" else 1000)] if value else [[]]
        return [None, *(set(one) if kind == TType.SET else one for one in lists)]
    if kind == TType.MAP:
        return [None, {}, {"a\0b": 1}, {"db.t": LARGEST}, {"db.t": SMALLEST}, {LONG: 1},
                {f"db.t{number}": number for number in range(MANY // 10)}]
    return [None]


def fields(struct, path=()):
    """(path, field) of a struct and of the structs in it."""
    for entry in struct.thrift_spec:
        if entry is None:
            continue
        value = getattr(struct, entry[2])
        yield (*path, entry[2]), entry
        if entry[1] == TType.STRUCT and value is not None:
            yield from fields(value, (*path, entry[2]))
        elif entry[1] == TType.LIST and value and hasattr(value[0], "thrift_spec"):
            yield from fields(value[0], (*path, entry[2], 0))


def variants(name, arguments):
    """Yield (number of the argument, path in it, bad value) for every field of a call."""
    entries = [entry for entry in getattr(ThriftHiveMetastore, f"{name}_args").thrift_spec if entry]
    for place, (entry, argument) in enumerate(zip(entries, arguments, strict=True)):
        if entry[1] == TType.STRUCT:
            yield place, (), None
            for path, field in fields(argument):
                good = reduce(step_into, path, argument)
                yield from ((place, path, value) for value in bad_values(field, good))
        else:
            yield from ((place, (), value) for value in bad_values(entry))


def step_into(place, step):
    """Return an item or a field."""
    return place[step] if isinstance(step, int) else getattr(place, step)


def spoiled(arguments, place, path, value):
    """Return the arguments with one field set."""
    root = value if not path else copy.deepcopy(arguments[place])
    if path:
        setattr(reduce(step_into, path[:-1], root), path[-1], value)
    return [*arguments[:place], root, *arguments[place + 1:]]


def outcome(client, name, arguments):
    """Make a call, and return "ok" or its exception."""
    try:
        getattr(client, name)(*arguments)
    except (TExceptionBase, TApplicationException) as error:
        return error
    return "ok"


def complaint(found):
    """Return the fault of an answer, None if it is fine."""
    if found == "ok":
        return None
    if isinstance(found, TApplicationException):
        if found.type == TApplicationException.MISSING_RESULT:  # how Hive says "cannot tell" of a materialized view
            return None
        if found.type not in ANSWERED:
            return f"type {found.type}"
    text = found.message
    if not text or len(text.split()) < 3:
        return "no sentence"
    if len(text) > 2000:
        return f"{len(text)} characters long"
    if re.search(r"Traceback|psycopg2|\w+Error: |NoneType|Internal error", text):
        return "the text of a program, not of a person"
    return None


def everything(database):
    """Return a summary of the stored rows, heartbeats apart: it differs after any change or removal."""
    rows = database.once("SELECT " + ", ".join(
        f"(SELECT count(*) || ' ' || coalesce(max(xmin::text::bigint), 0) FROM {table})" for table in TABLES)
        + """, (SELECT md5(string_agg(id || state, ',' ORDER BY id)) FROM txns),
             (SELECT md5(string_agg(ext_id || state, ',' ORDER BY ext_id)) FROM locks),
             (SELECT next_txn_id FROM txn_counter)""")
    return dict(zip((*TABLES, "txns", "locks", "txn_counter"), rows[0], strict=True))


@pytest.fixture(scope="module")
def app(postgres, tmp_path_factory):
    """One server for all of this: it is to survive all of it."""
    with postgres.cloned() as url:
        running = App(build([SettingsSource("test", {
            "metastore.database.url": url, "hive.metastore.thrift.bind.host": "127.0.0.1", "hive.metastore.port": "0",
            "metastore.http.port": "0", "metastore.log.level": "error", "hive.max.open.txns": "10000000",
            "hive.metastore.transactional.event.listeners": "DbNotificationListener",
            "hive.metastore.warehouse.dir": tmp_path_factory.mktemp("warehouse").as_uri()})]), loops=False)
        running.start()
        yield running
        running.stop()


@pytest.fixture
def prepared(app):
    """Yield a client, a function that makes a transaction and a lock for one case, and the database."""
    app.database.once(EMPTY)
    with MetastoreClient(app.thrift_uri) as client:
        def prepare():
            [txn] = client.open_txns(ttypes.OpenTxnRequest(1, "ann", "h1")).txn_ids
            lock = client.lock(ttypes.LockRequest([component(partitionname=f"p={txn}")], 0, "ann", "h1")).lockid
            return txn, lock
        yield client, prepare, app.database


@pytest.mark.parametrize("call", CALLS)
def test_bad_input(prepared, call):
    client, prepare, database = prepared
    name = call.split()[0]
    wrong, answers = [], {"ok": 0, "refused": 0}
    for place, path, value in variants(name, CALLS[call](1, 1)):
        what = f"{'.'.join(map(str, path or (place,)))} = {value!r:.60}"
        arguments = spoiled(CALLS[call](*prepare()), place, path, value)
        before = everything(database)
        found = outcome(client, name, arguments)
        answers["ok" if found == "ok" else "refused"] += 1
        problem = complaint(found)
        if problem:
            wrong.append(f"{what}: {problem}: {found!r:.300}")
        if found != "ok" and (after := everything(database)) != before:
            wrong.append(f"{what}: refused, yet changed {[one for one in after if after[one] != before[one]]}: {found!r:.200}")
        if client.getName() is None:
            wrong.append(f"{what}: the connection is gone")
    if wrong:
        pytest.fail(f"{len(wrong)} of {answers}:\n" + "\n".join(wrong).replace("\0", "<NUL>"), pytrace=False)
