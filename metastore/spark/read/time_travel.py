"""Tables as they were: which point in the past is meant, and whether all of its files are still there.

Rule: right, or refused. The Cleaner removes what a base has replaced, directory by directory, and what it has removed
leaves no trace in the listing. So where it has begun behind a base that the past does not see, nothing is read.
"""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import TypeAlias
from zoneinfo import ZoneInfo

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from metastore.acid.names import BaseName, parse_directory
from metastore.acid.snapshots import RangeState, ValidWriteIdList
from metastore.acid.state import NotEnoughHistoryError
from metastore.client import DomainClient
from metastore.errors import InvalidOperationError
from metastore.files import Files
from metastore.ids import TableName
from metastore.partition_names import canonical
from metastore.spark.read.listing import Directory
from metastore.spark.sql.dialect import DIALECT
from metastore.spark.sql.statements import TableRef
from metastore.spark.tables.acid_table import TableKind

AsOf: TypeAlias = int | datetime
"""A point in a table's past: a write id, or an instant."""

_NOT_CLEANED = frozenset({"initiated", "working", "refused", "did not initiate"})
"""Words of SHOW COMPACTIONS for what the Cleaner has never seen."""


def instant(spark: SparkSession, given: datetime | str) -> datetime:
    """An instant as a user gives it; without a zone it is in the Spark session's, as in Spark's SQL.

    Raises: InvalidOperationError.
    """
    try:
        at = datetime.fromisoformat(given) if isinstance(given, str) else given
    except ValueError:
        raise InvalidOperationError(f"{given!r} is no instant: write it like 2026-11-21 09:30:00") from None
    return at if at.tzinfo else at.replace(tzinfo=ZoneInfo(str(spark.conf.get("spark.sql.session.timeZone"))))


def version_of(spark: SparkSession, ref: TableRef) -> AsOf | None:
    """Which point in the past a query means with VERSION AS OF (a write id) or TIMESTAMP AS OF, if it does.

    Raises: InvalidOperationError.
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


def cleaned_write_ids(client: DomainClient, name: TableName) -> dict[str, int]:
    """Up to which write id the Cleaner may have removed what was replaced, by partition."""
    types = client.types
    shown = client.show_compact(types.ShowCompactRequest(dbName=name.db, tbName=name.table)).compacts
    cleaned: dict[str, int] = {}
    for one in shown:
        if (one.dbname, one.tablename) == (name.db, name.table) and one.state not in _NOT_CLEANED:
            partition = canonical(one.partitionname or "")
            cleaned[partition] = max(cleaned.get(partition, 0), one.hightestWriteId or 0)
    return cleaned


def require_kept(
    files: Files,
    kind: TableKind,
    directories: Iterable[Directory],
    write_ids: ValidWriteIdList,
    cleaned: dict[str, int],
) -> None:
    """Raise NotEnoughHistoryError for directories of a past snapshot that may not be complete any more.

    ``cleaned`` has to be asked for after the directories were listed.
    """
    for directory in directories:
        if kind is TableKind.INSERT_ONLY:
            _require_whole_deltas(directory, write_ids)
        up_to = cleaned.get(canonical(directory.partition), 0)
        if _sees_all(write_ids, up_to):
            continue
        seen = directory.state.base.name.write_id if directory.state.base else 0
        if replaced_by := [base for base in _bases(files, directory.location) if seen < base.write_id <= up_to]:
            raise NotEnoughHistoryError(
                f"{directory.location} was compacted or overwritten since then ({min(replaced_by)}), and what that "
                "replaced has been cleaned up, or is just being"
            )


def _sees_all(write_ids: ValidWriteIdList, up_to: int) -> bool:
    hidden = [one for one in write_ids.invalid if one <= up_to and one not in write_ids.aborted]
    return up_to <= write_ids.high_watermark and not hidden


def _require_whole_deltas(directory: Directory, write_ids: ValidWriteIdList) -> None:
    """Rows of insert-only files do not tell their write id."""
    for delta in directory.state.deltas:
        if delta.visible is RangeState.SOME and not _sees_all(write_ids, delta.name.max_write_id):
            raise NotEnoughHistoryError(f"{directory.location}/{delta.path} holds rows from before and from after then")


def _bases(files: Files, location: str) -> Sequence[BaseName]:
    names = {entry.path.partition("/")[0] for entry in files.listing(location)}
    return [
        parsed for name in names if name.startswith("base_") and isinstance(parsed := parse_directory(name), BaseName)
    ]
