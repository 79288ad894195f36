"""What files of the old writers without Spark are looked at for: Arrow's own writer made them."""

from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import orc

from metastore.acid.violations import LayoutRule
from metastore.acid_tables.orc_rows import OrcRows
from metastore.files import Files
from metastore.spark.check.old_files import check_old


def test_only_columns_that_may_have_times_before_1970_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fraction of less than a millisecond before 1970 counts as 1970 in the statistics."""
    times = {"early": [-1_500_000, None], "just": [-1, 5_000_000], "whole": [-2_000_000, 1], "late": [1_000, 2_500_000], "none": [None, None]}
    arrays = {name: pa.array(values, pa.timestamp("us")) for name, values in times.items()}
    orc.write_table(pa.table({"n": [-1, 2], **arrays}), tmp_path / "000000_0")
    read, original = [], OrcRows.has_negative_fraction

    def noted(rows: OrcRows, column: str) -> bool:
        read.append(column)
        return original(rows, column)
    monkeypatch.setattr(OrcRows, "has_negative_fraction", noted)

    found = check_old(Files(), str(tmp_path), "000000_0")

    assert read == ["early", "just", "whole"]
    assert [(one.rule, one.path, one.text.split(" has ")[0]) for one in found] == [
        (LayoutRule.NEGATIVE_FRACTION, "000000_0", "Column early"), (LayoutRule.NEGATIVE_FRACTION, "000000_0", "Column just")]
