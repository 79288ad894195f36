"""A streaming query whose batches a test chooses."""

from pyspark.sql import functions as F

SCHEMA = "id INT, name STRING"


class JsonStream:
    """A source of JSON files, one of them a batch; and a query's checkpoint."""

    def __init__(self, spark, tmp_path):
        self.spark, self.source, self.checkpoint = spark, tmp_path / "source", tmp_path / "checkpoint"
        self.source.mkdir()

    def add(self, *ids):
        lines = "\n".join(f'{{"id": {one}, "name": "n{one}"}}' for one in ids)
        (self.source / f"{len(list(self.source.iterdir())):03d}.json").write_text(lines)

    def rows(self):
        return (self.spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).json(str(self.source))
                .withColumn("part", F.col("id") % 2))

    def run(self, session, name, **options):
        """Everything that there is by ``session.stream_into``, then stop."""
        query = session.stream_into(self.rows().writeStream.trigger(availableNow=True), name,
                                    checkpoint=str(self.checkpoint), **options)
        query.awaitTermination(300)
        return query

    def to_table(self, name):
        """Run the query by Spark's own toTable, which asks the thread's session for the catalog."""
        self.spark._jvm.org.apache.spark.sql.classic.SparkSession.setActiveSession(self.spark._jsparkSession)
        query = self.rows().writeStream.trigger(availableNow=True).option("checkpointLocation", str(self.checkpoint)).toTable(name)
        query.awaitTermination(300)
        return query

    def forget(self, batch_id):
        """Remove the end of a batch, as after a crash between the table's commit and the query's own."""
        (self.checkpoint / "commits" / str(batch_id)).unlink()
        (self.checkpoint / "commits" / f".{batch_id}.crc").unlink(missing_ok=True)
