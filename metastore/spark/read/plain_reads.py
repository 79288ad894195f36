"""Transactional tables that Spark reads or writes by itself: without their delete events, in no transaction.

Rule: a statement of the session that would read so (most often through a view) is refused. Statements of others with
the same SparkSession object get a warning: its ``sql``, ``table`` and ``read.table`` check the plan that they return,
``insertInto`` and ``saveAsTable`` of its frames check the table to write.
"""

import warnings
from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, DataFrameReader, DataFrameWriter, SparkSession

from metastore.errors import InvalidOperationError
from metastore.spark.jvm.compiled import PACKAGE

_WATCHED = "_acid_watched"


class PlainReadWarning(UserWarning):
    """Spark reads a transactional table behind the session's back."""


class PlainWriteWarning(UserWarning):
    """Spark has written into a transactional table behind the session's back."""


def plainly_read(frame: DataFrame) -> list[str]:
    """Names of the transactional tables that ``frame`` reads as if they were plain."""
    plan = frame._jdf.queryExecution().analyzed()  # noqa: SLF001 - PySpark does not show plans as values
    names = set()
    for subplan in (plan, *_items(plan.subqueriesAll())):
        for leaf in _items(subplan.collectLeaves()):
            table = _catalog_table(leaf, str(leaf.nodeName()))
            if table is not None and _is_transactional(table):
                names.add(_name(table))
    return sorted(names)


def plainly_written(frame: DataFrame) -> str | None:
    """Name of the transactional table that a statement has written as if it were plain; None: it has not."""
    plan = frame._jdf.queryExecution().analyzed()  # noqa: SLF001 - as above
    match str(plan.getClass().getSimpleName()):
        case "InsertIntoHiveTable":
            table = plan.table()
        case "InsertIntoHadoopFsRelationCommand" if plan.catalogTable().isDefined():
            table = plan.catalogTable().get()
        case _:
            return None
    return _name(table) if _is_transactional(table) else None


def _is_transactional(table: Any) -> bool:
    return "true" in str(table.properties().get("transactional")).lower()


def _name(table: Any) -> str:
    return str(table.identifier().unquotedString()).removeprefix("spark_catalog.")


def _items(sequence: Any) -> Iterator[Any]:
    """The members of a Scala sequence."""
    for position in range(sequence.size()):
        yield sequence.apply(position)


def require_no_plain_read(frame: DataFrame) -> DataFrame:
    """The same frame. Raises: InvalidOperationError if it reads a transactional table plainly."""
    if names := plainly_read(frame):
        raise InvalidOperationError(
            f"{', '.join(names)}: transactional, and read here by Spark itself, through a view or with spark.table. "
            "Spark does not know of deleted rows. Read the table with session.table or session.sql, by its own name."
        )
    return frame


def checked_sql(spark: SparkSession, text: str) -> DataFrame:
    """Run a query by Spark. Raises: InvalidOperationError if it reads a transactional table plainly."""
    return require_no_plain_read(SparkSession.sql(spark, text))  # not spark.sql, which may be watched


def require_parsed(spark: SparkSession, text: str) -> None:
    """Raise ParseException for a query that Spark cannot parse, whatever another parser accepts."""
    spark._jsparkSession.sessionState().sqlParser().parsePlan(text)  # noqa: SLF001 - PySpark shows no other way


def watch(spark: SparkSession) -> None:
    """Make this object, its readers and the writers of its frames warn of plain reads and writes."""
    if not getattr(spark, _WATCHED, False):
        for name in ("sql", "table"):
            setattr(spark, name, _warning(getattr(spark, name)))
        setattr(spark, _WATCHED, True)
    if not hasattr(DataFrameReader, _WATCHED):  # Spark makes readers and writers anew for each use
        setattr(DataFrameReader, "table", _warning(DataFrameReader.table, _is_watched))  # noqa: B010 - a method
        for name in ("insertInto", "saveAsTable"):
            setattr(DataFrameWriter, name, _warning_of_target(getattr(DataFrameWriter, name)))
        setattr(DataFrameReader, _WATCHED, True)


def _is_watched(reader: Any, *_: Any) -> bool:
    """Whether a reader or writer is of a watched session without the catalog, which reads and writes right."""
    spark = reader._spark  # noqa: SLF001 - they do not show their session
    return getattr(spark, _WATCHED, False) is True and not _has_catalog(spark)


def _has_catalog(spark: SparkSession) -> bool:
    return str(spark.conf.get("spark.sql.catalog.spark_catalog", "")).startswith(PACKAGE)


def _warning(
    read: Callable[..., DataFrame], is_watched: Callable[..., bool] = lambda *_: True
) -> Callable[..., DataFrame]:
    @wraps(read)
    def watched(*arguments: Any, **options: Any) -> DataFrame:
        frame = read(*arguments, **options)
        if not is_watched(*arguments):
            return frame
        if name := plainly_written(frame):
            _warn_of_write(name)
        elif names := plainly_read(frame):
            warnings.warn(
                f"{', '.join(names)}: transactional, and read by Spark itself, which does not know of "
                "deleted rows. Use the session's table() or sql().",
                PlainReadWarning,
                stacklevel=2,
            )
        return frame

    return watched


def _warning_of_target(write: Callable[..., None]) -> Callable[..., None]:
    @wraps(write)
    def watched(self: DataFrameWriter, *arguments: Any, **options: Any) -> None:
        name = arguments[0] if arguments else options.get("tableName", options.get("name"))
        if _is_watched(self) and (transactional := _transactional(self._spark, str(name))):
            _warn_of_write(transactional)
        write(self, *arguments, **options)

    return watched


def _warn_of_write(name: str) -> None:
    warnings.warn(
        f"{name}: transactional, and written by Spark itself, in no transaction. Move the files out of the "
        "table's directory, and use the session's sql() or insert().",
        PlainWriteWarning,
        stacklevel=3,
    )


def _transactional(spark: SparkSession, name: str) -> str | None:
    """The full name of the transactional table that Spark knows by ``name``; None if there is no such table."""
    state = spark._jsparkSession.sessionState()  # noqa: SLF001 - PySpark does not show properties of tables as values
    try:
        table = state.catalog().getTableMetadata(state.sqlParser().parseTableIdentifier(name))
    except (Py4JJavaError, PySparkException):
        return None
    return _name(table) if _is_transactional(table) else None


def _catalog_table(leaf: Any, kind: str) -> Any:
    """The metastore's table behind a leaf of a plan; None if there is none."""
    if kind.startswith("HiveTableRelation"):
        return leaf.tableMeta()
    if kind.startswith(("LogicalRelation", "Relation")) and "LogicalRelation" in str(leaf.getClass().getName()):
        table = leaf.catalogTable()
        return table.get() if table.isDefined() else None
    return None
