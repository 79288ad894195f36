"""The Spark driver that makes the tables before anything else begins."""

from tests.robustness.soak.driver import Driver
from tests.robustness.soak.tables import ACCOUNTS, EACH


class Preparing(Driver):
    """Makes the tables, with enough deltas in each that compacting them is worth it."""

    def run(self) -> None:
        acid = "STORED AS ORC TBLPROPERTIES ('transactional'='true'"
        on_disk = f"ORC LOCATION '{(self.directory / 'disk' / 't').as_uri()}'"
        for sql in (
                "CREATE DATABASE soak",
                f"CREATE TABLE soak.facts (id INT, v INT, note STRING) PARTITIONED BY (w INT) {acid})",
                f"CREATE TABLE soak.flat (id INT, v INT, note STRING, w INT) CLUSTERED BY (id) INTO 2 BUCKETS {acid})",
                f"CREATE TABLE soak.accounts (id INT, balance INT, moves INT) {acid})",
                f"CREATE TABLE soak.streamed (id INT) {acid})",
                f"CREATE TABLE soak.broken (id INT, v STRING) {acid}, 'no_auto_compaction'='true')",
                f"CREATE TABLE soak.on_disk (id INT, v STRING) {acid.replace('ORC', on_disk)})",
                *(f"INSERT INTO soak.accounts SELECT CAST(id AS INT), {EACH}, 0 FROM range({ACCOUNTS}) WHERE id % 2 = {half}" for half in (0, 1)),
                *(f"INSERT INTO soak.{table} VALUES ({number}, 0, 'of nobody', 9)" for table in ("facts", "flat") for number in (1, 2)),
                "INSERT INTO soak.broken SELECT CAST(id AS INT), uuid() FROM range(1000)",
                "INSERT INTO soak.broken SELECT CAST(id AS INT), uuid() FROM range(1000)",
                "INSERT INTO soak.on_disk VALUES (1, 'a'), (2, 'b')"):
            self.spark.sql(sql)
