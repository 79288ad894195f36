"""Points in a table's past, as users of Spark write them."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from metastore.acid_tables.time_travel import AsOf
from metastore.errors import InvalidOperationError
from metastore.spark.sql.dialect import DIALECT
from metastore.spark.sql.statements import TableRef


def instant(spark: SparkSession, moment: datetime | str) -> datetime:
    """A user's moment as an instant; without a zone it is in the Spark session's, as in Spark's SQL.

    Raises: InvalidOperationError for a text that is no timestamp.
    """
    try:
        at = datetime.fromisoformat(moment) if isinstance(moment, str) else moment
    except ValueError:
        raise InvalidOperationError(f"{moment!r} is no instant: write it like 2026-11-21 09:30:00") from None
    return at if at.tzinfo else at.replace(tzinfo=ZoneInfo(str(spark.conf.get("spark.sql.session.timeZone"))))


def version_of(spark: SparkSession, ref: TableRef) -> AsOf | None:
    """The point in the past of VERSION AS OF (a write id) or TIMESTAMP AS OF; None: the query reads the present.

    Raises: InvalidOperationError for a version that is no number, or a timestamp that is no instant.
    """
    if ref.version is None:
        return None
    value = ref.version.expression.sql(DIALECT)
    text = ref.version.sql(DIALECT)
    if ref.version.args["kind"] != "AS OF":
        raise InvalidOperationError(f"{text}: a table is read AS OF a point in time; see changes(...).")
    if ref.version.this == "VERSION":
        if not value.strip("'").isdigit():
            raise InvalidOperationError(f"{text}: a version is a write id, a number.")
        return int(value.strip("'"))
    try:
        row = spark.sql(f"SELECT unix_micros(CAST({value} AS TIMESTAMP))").first()
    except PySparkException as error:
        raise InvalidOperationError(f"{text}: {(error.getMessage() or str(error)).splitlines()[0]}") from error
    if row is None or row[0] is None:
        raise InvalidOperationError(f"{text}: that is no instant.")
    return datetime.fromtimestamp(0, UTC) + timedelta(microseconds=row[0])
