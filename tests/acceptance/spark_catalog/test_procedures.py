"""CALL: the planner's procedures with Spark's arguments, defaults and types, and Spark's own refusals."""

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql.types import BooleanType, LongType, StringType, TimestampType

pytestmark = pytest.mark.spark


def test_procedures_answer_typed_rows(catalog, db) -> None:
    catalog.sql(f"CREATE TABLE {db}.t (n INT) PARTITIONED BY (k STRING) STORED AS ORC TBLPROPERTIES ('transactional'='true')")
    catalog.sql(f"INSERT INTO {db}.t VALUES (1, 'a'), (2, 'b')")
    catalog.sql(f"DELETE FROM {db}.t WHERE n = 2")

    history = catalog.sql(f"CALL spark_catalog.system.history('{db}.t')")
    assert {field.name: type(field.dataType) for field in history.schema.fields} == {
        "write_id": LongType, "txn_id": LongType, "committed_at": TimestampType, "started_at": TimestampType, "user": StringType,
        "host": StringType, "agent_info": StringType, "operations": StringType, "partitions": LongType, "complete": BooleanType}
    deleted, inserted = history.collect()
    assert (deleted.write_id, deleted.operations, deleted.partitions) == (2, "delete", 1)
    assert (inserted.write_id, inserted.operations, inserted.partitions) == (1, "insert", 2)
    assert inserted.started_at <= inserted.committed_at <= deleted.committed_at
    assert inserted.agent_info.startswith("spark ")

    [request] = catalog.sql(f"CALL system.compact(table => '{db}.t', type => 'minor', partition => 'k=b')").collect()
    assert (request.accepted, request.partition, request.state, request.message) == (True, "k=b", "initiated", None)
    assert catalog.sql("CALL system.abort_transactions(array(4711), owner_gone => true)").first().aborted is False
    assert catalog.sql("SHOW PROCEDURES IN system").count() > 5

    for statement, refusal in (
            ("nothing()", "FAILED_TO_LOAD_ROUTINE"),
            ("compact()", r"REQUIRED_PARAMETER_NOT_FOUND.*`table`"),
            ("compact('t', speed => 9)", "UNRECOGNIZED_PARAMETER_NAME.*`speed`")):
        with pytest.raises(AnalysisException, match=f"(?s){refusal}"):
            catalog.sql(f"CALL system.{statement}")
    with pytest.raises(Exception, match=f"{db}.none"):
        catalog.sql(f"CALL system.history('{db}.none')")
