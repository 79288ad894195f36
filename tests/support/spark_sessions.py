"""The Spark that tests share: small, quick, in UTC, with its built-in Hive client on a metastore."""

from pathlib import Path
from typing import Any


def spark_on(uri: str, warehouse: str, master: str = "local[2]") -> Any:
    """Start a session; ``warehouse``: where Spark puts tables of databases that it makes itself."""
    from pyspark.sql import SparkSession

    session = (
        SparkSession.builder.master(master)
        .config("spark.ui.enabled", "false")
        .config("spark.ui.retainedJobs", "20")  # nobody looks at what ran, and every garbage collection would pass through it
        .config("spark.ui.retainedStages", "20")
        .config("spark.ui.retainedTasks", "200")
        .config("spark.sql.ui.retainedExecutions", "20")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.default.parallelism", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.driver.extraJavaOptions", "-Duser.timezone=UTC")
        .config("spark.driver.memory", "1g")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.hadoop.hive.metastore.uris", uri)
        .config("spark.sql.warehouse.dir", warehouse)
        .config("spark.jars", connector())
        .config("spark.sql.extensions", "transactionmetastore.spark.catalog.AcidExtensions" if connector() else "")
        .enableHiveSupport()
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    return session


def connector() -> str:
    """Return the jar of our Java classes, compiled with warnings as errors; "" where none can be made."""
    import pyspark

    from metastore.spark.jvm.jars import NoJarError, connector_jar

    try:
        return str(connector_jar(Path(pyspark.__file__).parent, are_warnings_errors=True))
    except NoJarError:
        return ""


def skip_without_acid(spark: Any) -> None:
    """Skip what needs ``acid(spark)``, which older Sparks have not; the catalog they have."""
    import pytest

    from metastore.errors import InvalidOperationError
    from metastore.spark.jvm.versions import require_supported

    try:
        require_supported(spark.version)
    except InvalidOperationError as error:
        pytest.skip(str(error))


def is_before(spark: Any, version: str) -> bool:
    """Whether a Spark is older than a minor version."""
    return tuple(map(int, spark.version.split(".")[:2])) < tuple(map(int, version.split(".")))


def skip_where_inserts_give_all_columns(spark: Any) -> None:
    """Skip what leaves columns out of an INSERT, which Spark 4.0 does not fill in."""
    import pytest

    if is_before(spark, "4.1"):
        pytest.skip("Spark 4.0 fills in no columns")


def drop_database(uri: str, name: str) -> None:
    """With all that is in it, whatever drivers that were killed still hold.

    By our client: Spark's asks for each table first, and does not get transactional ones.
    """
    from metastore.client import MetastoreClient

    with MetastoreClient(uri) as client:
        for lock in client.show_locks(client.types.ShowLocksRequest(dbname=name)).locks:
            if lock.txnid:
                client.abort_txns(client.types.AbortTxnsRequest([lock.txnid]))
            else:
                client.unlock(client.types.UnlockRequest(lock.lockid))
        client.drop_database(name, True, True)
