"""The contents of large answers: partitions, locks, compactions and transactions, put into a metastore's database.

A metastore makes the first object of each kind itself; the others are copies of its rows, made by PostgreSQL. So all
metastores have the same objects, however slowly they create them, and whatever the names of their tables.
"""

from collections.abc import Iterator

from benchmarks.contestants import Contestant
from benchmarks.peers import run_sql
from metastore.thrift_gen.hive_metastore import ttypes

DB = "bench"
DAYS = 100
COLUMNS = 20
SERDE = "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe"
PARAMETERS = {
    "numFiles": "1",
    "numRows": "100",
    "rawDataSize": "123",
    "totalSize": "12345",
    "transient_lastDdlTime": "1732333333",
}
_FIRST_ID = 1_000_000_000
"""The first id of copies: no metastore under measurement gets so far."""
_DAY = f"'d' || lpad((n % {DAYS})::text, 2, '0')"
_NAME = f"'day=' || {_DAY} || '/n=' || n"
_OURS = f"""
INSERT INTO partitions (table_id, name, "values", create_time, location, digest, parameters)
SELECT table_id, {_NAME}, ARRAY[{_DAY}, n::text], p.create_time, replace(p.location, '/n=0', '/n=' || n), digest,
       p.parameters
FROM partitions AS p, generate_series(1, {{count}} - 1) AS n
WHERE table_id = (SELECT id FROM tables WHERE name = '{{table}}')"""
_OUR_TABLES = """
INSERT INTO tables (catalog, db, name, type, owner, create_time, location, sd, partition_keys, parameters)
SELECT catalog, db, 'table_' || n, type, owner, create_time, location || n, sd, partition_keys, parameters
FROM tables, generate_series(1, {count}) AS n WHERE name = 'plain'"""
_HIVES_TABLE = """
SELECT t."TBL_ID", s."SD_ID", s."SERDE_ID" FROM "TBLS" AS t JOIN "SDS" AS s USING ("SD_ID")
WHERE t."TBL_NAME" = 'plain'"""
_HIVES_PARTITION = """
SELECT p."PART_ID", s."SD_ID", s."SERDE_ID" FROM "PARTITIONS" AS p JOIN "SDS" AS s USING ("SD_ID")
JOIN "TBLS" AS t USING ("TBL_ID") WHERE t."TBL_NAME" = '{}'"""


def make_tables(server: Contestant, **counts: int) -> None:
    """Create the database, and in it tables with so many partitions."""
    with server.client() as client:
        client.create_database(ttypes.Database(DB))
        for table, count in counts.items():
            place = f"{client.get_database(DB).locationUri}/{table}"
            client.create_table(
                ttypes.Table(
                    table,
                    DB,
                    "ann",
                    sd=descriptor(place),
                    parameters={"EXTERNAL": "TRUE"},
                    partitionKeys=[ttypes.FieldSchema("day", "string", ""), ttypes.FieldSchema("n", "string", "")],
                    tableType="EXTERNAL_TABLE",
                )
            )
            if count:
                client.add_partitions(list(partitions(table, place, range(1))))
    for table, count in counts.items():
        _copy_partitions(server, table, count)
    run_sql(server.database_url, "VACUUM (ANALYZE)")


def make_many_tables(server: Contestant, count: int) -> None:
    """Add tables ``table_1`` and on, beside ``plain``, without partitions."""
    with server.client() as client:
        place = f"{client.get_database(DB).locationUri}/plain"
        more = {**PARAMETERS, "EXTERNAL": "TRUE"}
        client.create_table(
            ttypes.Table("plain", DB, "ann", sd=descriptor(place), parameters=more, tableType="EXTERNAL_TABLE")
        )
    if _is_ours(server):
        run_sql(server.database_url, _OUR_TABLES.format(count=count))
        return
    [(table, sd, serde)] = run_sql(server.database_url, _HIVES_TABLE)
    base = _made(server)
    numbers, new = range(1, count + 1), _id(f"{base} + n")
    _copy(server, "SERDES", f'"SERDE_ID" = {serde}', numbers, serde_id=new)
    _copy(server, "SERDE_PARAMS", f'"SERDE_ID" = {serde}', numbers, serde_id=new)
    _copy(server, "SDS", f'"SD_ID" = {sd}', numbers, sd_id=new, serde_id=new, location='"LOCATION" || n')
    _copy(server, "TBLS", f'"TBL_ID" = {table}', numbers, tbl_id=new, sd_id=new, tbl_name="'table_' || n")
    _copy(server, "TABLE_PARAMS", f'"TBL_ID" = {table}', numbers, tbl_id=new)


def describe_columns(server: Contestant, count: int) -> None:
    """Add statistics of all columns to so many partitions of ``t``, the first of the tables."""
    data = ttypes.ColumnStatisticsData(stringStats=ttypes.StringColumnStatsData(20, 10.5, 5, 1000))
    objects = [ttypes.ColumnStatisticsObj(f"column_{n}", "string", data) for n in range(COLUMNS)]
    about = ttypes.ColumnStatisticsDesc(isTblLevel=False, dbName=DB, tableName="t", partName=name_of(0))
    with server.client() as client:
        client.update_partition_column_statistics(ttypes.ColumnStatistics(about, objects))
    ours = {"partition": _NAME}
    hives = {"cs_id": _id('n * 1000 + "CS_ID"'), "part_id": _id("n"), "partition_name": _NAME}
    table = "column_statistics" if _is_ours(server) else "PART_COL_STATS"
    _copy(server, table, "true", range(1, count), **(ours if _is_ours(server) else hives))


def descriptor(location: str) -> ttypes.StorageDescriptor:
    """Return the storage descriptor of a partition at ``location``."""
    return ttypes.StorageDescriptor(
        cols=[ttypes.FieldSchema(f"column_{n}", "string", "") for n in range(COLUMNS)],
        location=location,
        parameters={},
        inputFormat="org.apache.hadoop.mapred.TextInputFormat",
        outputFormat="org.apache.hadoop.hive.ql.io.HiveIgnoreKeyTextOutputFormat",
        compressed=False,
        numBuckets=-1,
        bucketCols=[],
        sortCols=[],
        serdeInfo=ttypes.SerDeInfo("t", SERDE, {"serialization.format": "1"}),
    )


def name_of(number: int) -> str:
    """Return the name of the partition of this number."""
    return f"day=d{number % DAYS:02}/n={number}"


def partitions(table: str, place: str, numbers: range, **more: str) -> Iterator[ttypes.Partition]:
    """Yield partitions as clients send them; ``more``: parameters."""
    for n in numbers:
        values = [f"d{n % DAYS:02}", str(n)]
        sd = descriptor(f"{place}/{name_of(n)}")
        yield ttypes.Partition(values, DB, table, 1732333333, 0, sd, {**PARAMETERS, **more})


def hold_locks(server: Contestant, count: int) -> None:
    """Add so many locks without a transaction, each of another table."""
    with server.client() as client:
        present = len(client.show_locks(ttypes.ShowLocksRequest()).locks)
        if not present:
            part = ttypes.LockComponent(ttypes.LockType.SHARED_READ, ttypes.LockLevel.TABLE, DB, "t")
            client.lock(ttypes.LockRequest([part], None, "ann", "node1", "bench"))
    table, external = ("locks", "ext_id") if _is_ours(server) else ("hive_locks", "hl_lock_ext_id")
    first = f"{_n(external)} = (SELECT min({_n(external)}) FROM {{stored}})"
    _copy(server, table, first, range(max(1, present), count), **{external: _id("n")})


def queue_compactions(server: Contestant, count: int) -> None:
    """Queue so many compactions, each of another table."""
    with server.client() as client:
        if _is_ours(server):  # the other metastores take a request for any table
            acid = {"transactional": "true", "transactional_properties": "insert_only"}
            place = f"{client.get_database(DB).locationUri}/acid"
            client.create_table(
                ttypes.Table("acid", DB, "ann", sd=descriptor(place), parameters=acid, partitionKeys=[])
            )
        client.compact(ttypes.CompactionRequest(DB, "acid", None, ttypes.CompactionType.MAJOR))
    names = {"id": _id("n"), "table": "'t' || n"} if _is_ours(server) else {"cq_id": _id("n"), "cq_table": "'t' || n"}
    _copy(server, "compaction_queue", "true", range(1, count), **names)


def _is_ours(server: Contestant) -> bool:
    return type(server) is Contestant


def _copy_partitions(server: Contestant, table: str, count: int) -> None:
    if count < 2:
        return
    if _is_ours(server):
        run_sql(server.database_url, _OURS.format(table=table, count=count))
        return
    [(part, sd, serde)] = run_sql(server.database_url, _HIVES_PARTITION.format(table))
    base = _made(server)
    numbers, new = range(1, count), _id(f"{base} + n")
    _copy(server, "SERDES", f'"SERDE_ID" = {serde}', numbers, serde_id=new)
    _copy(server, "SERDE_PARAMS", f'"SERDE_ID" = {serde}', numbers, serde_id=new)
    location = """replace("LOCATION", '/n=0', '/n=' || n)"""
    _copy(server, "SDS", f'"SD_ID" = {sd}', numbers, sd_id=new, serde_id=new, location=location)
    _copy(server, "PARTITIONS", f'"PART_ID" = {part}', numbers, part_id=new, sd_id=new, part_name=_NAME)
    value = f'CASE "INTEGER_IDX" WHEN 0 THEN {_DAY} ELSE n::text END'
    _copy(server, "PARTITION_KEY_VALS", f'"PART_ID" = {part}', numbers, part_id=new, part_key_val=value)
    _copy(server, "PARTITION_PARAMS", f'"PART_ID" = {part}', numbers, part_id=new)


def _made(server: Contestant) -> int:
    """Return the number of copied descriptors, which are those of earlier tables."""
    return len(run_sql(server.database_url, f'SELECT 1 FROM "SDS" WHERE "SD_ID" >= {_FIRST_ID}'))


def _copy(server: Contestant, table: str, condition: str, numbers: range, /, **changed: str) -> None:
    """Copy the rows of a table that meet a condition, once for each ``n``; ``changed``: new values of columns."""
    columns = run_sql(
        server.database_url,
        "SELECT table_name, column_name FROM information_schema.columns "
        f"WHERE table_schema = 'public' AND lower(table_name) = lower('{table}') ORDER BY ordinal_position",
    )
    names = [column for _, column in columns]
    values = [changed.get(name.lower(), _n(name)) for name in names]
    stored = _n(columns[0][0])
    condition = _as_stored(condition, names).replace("{stored}", stored)
    run_sql(
        server.database_url,
        f"INSERT INTO {stored} ({', '.join(map(_n, names))}) SELECT {', '.join(values)} "
        f"FROM {stored}, generate_series({numbers.start}, {numbers.stop - 1}) AS n WHERE {condition}",
    )


def _as_stored(condition: str, names: list[str]) -> str:
    """Return the condition with the stored names of columns: Hive 4 writes them in upper case where Hive 2 did not."""
    for name in names:
        if not name.islower():
            condition = condition.replace(_n(name.lower()), _n(name))
    return condition


def _n(name: str) -> str:
    return f'"{name}"'


def _id(number: str) -> str:
    return f"{_FIRST_ID} + {number}"
