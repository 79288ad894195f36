"""What a user of Spark is told while the server has no database: a sentence, whichever call meets it."""

from contextlib import closing

import pytest
from pyspark.errors import PySparkException

from metastore.client import MetastoreClient
from metastore.config import PlannerSettings, TlsSettings
from metastore.errors import MetastoreError
from metastore.planner.client_pool import Metastores
from metastore.planner.server import PlannerServer
from metastore.spark import acid
from tests.support.away import SENTENCE, without_database

pytestmark = pytest.mark.spark

_ACID = "STORED AS ORC TBLPROPERTIES ('transactional'='true')"


def _asking(spark, metastores):
    """Give the session a planner of these metastores, which ends with this process, and return the session."""
    host, port = PlannerServer(metastores, PlannerSettings(), TlsSettings()).start("127.0.0.1", 0)
    spark.conf.set("spark.sql.catalog.spark_catalog.planner", f"http://{host}:{port}")
    return spark


@pytest.mark.parametrize(("lost", "statement"), [
    ("get_table_req", "INSERT INTO {db}.t VALUES (1, 'a')"),
    ("get_partitions_by_names", "INSERT INTO {db}.t VALUES (1, 'a')"),
    ("add_partitions_req", "INSERT INTO {db}.t VALUES (1, 'new')"),
    ("get_partitions", "SELECT * FROM {db}.t"),
    ("get_partition_names", "SELECT * FROM {db}.t WHERE day > 'a'"),
    ("create_table_req", "CREATE TABLE {db}.other (id INT) " + _ACID),
    ("alter_table_with_cascade", "ALTER TABLE {db}.t ADD COLUMNS (more INT)")])
def test_a_statement_tells_it_in_a_sentence(acid_session, spark, lakehouse, db, lost, statement):
    acid_session.sql(f"CREATE TABLE {db}.t (id INT) PARTITIONED BY (day STRING) {_ACID}")
    with (MetastoreClient(lakehouse.uri) as client, without_database(client, lost) as server,
          closing(Metastores(server.uri)) as metastores, acid(_asking(spark.newSession(), metastores)) as session):
        with pytest.raises((MetastoreError, PySparkException), match=SENTENCE):
            session.sql(statement.format(db=db)).collect()
        assert lost in server.calls
