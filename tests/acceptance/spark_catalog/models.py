"""The rows that the tables of ``statements.py`` should have, as views of a session, which no transactional table is behind."""

from pyspark.sql import DataFrame, SparkSession

from tests.acceptance.spark_catalog.statements import TABLES, Change, columns_of


class Models:
    """One view for each table, empty at first."""

    def __init__(self, session: SparkSession) -> None:
        self.session = session
        self.views = {f"m_{name}": f"model_{name}" for name in TABLES}
        self.schemas = {}
        for name in TABLES:
            empty = session.createDataFrame([], columns_of(name))
            empty.createOrReplaceTempView(f"model_{name}")
            self.schemas[name] = empty.schema

    def change(self, change: Change) -> None:
        """Do what the change says that becomes of its table."""
        rows = self.session.sql(change.model.format(m=f"model_{change.table}", **self.views))
        schema = self.schemas[change.table]
        typed = rows.toDF(*schema.names).selectExpr(*(f"CAST({one.name} AS {one.dataType.simpleString()}) {one.name}" for one in schema))
        typed.localCheckpoint().createOrReplaceTempView(f"model_{change.table}")

    def answer(self, query: str) -> DataFrame:
        """Return the answer of a query over the tables."""
        return self.session.sql(query.format(**{name: f"model_{name}" for name in TABLES}))

    def drop(self) -> None:
        for view in self.views.values():
            self.session.catalog.dropTempView(view)
