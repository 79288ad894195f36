"""Files through Spark's JVM, where the file system takes nothing."""

import pytest

from metastore.compaction.queue.rules.requests import outside_cause
from metastore.spark.jvm.hadoop import Hadoop

pytestmark = pytest.mark.spark


CHANGES = {
    "make": lambda hadoop, ours: hadoop.mkdirs("file:/proc/nothing/here"),
    "rename": lambda hadoop, ours: hadoop.rename(ours, "file:/proc/nothing")}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_what_a_file_system_refuses_is_no_fault_of_the_table(change, spark, tmp_path):
    """Hadoop answers no, without a reason. /proc refuses it to anybody."""
    with pytest.raises(OSError, match="The file system refuses to .* read-only, or is a right missing") as refused:
        change(Hadoop(spark), tmp_path.as_uri())

    assert outside_cause(str(refused.value))
    assert tmp_path.is_dir()
