"""The cases of directory selection, asked of Hive 4.0.1's AcidUtils too: `make interop-tables`; not part of `make test`.

Hive 2.3.10, which `make test` asks, knows no transaction numbers in names and no bases of overwrites; Hive 4 knows all.
"""

import json

import pytest

from metastore.acid.snapshots import CompactorWriteIdList
from tests.interop.java import JavaError
from tests.support.acid.vectors import directory_vectors


def _make(place, vector):
    for child in vector.children:
        if child.startswith(("base_", "delta_", "delete_", "HIVE_", "_tmp", ".hive")):
            (place / child).mkdir(parents=True)
            (place / child / "bucket_00000").touch()
        else:
            (place / child).write_text("not empty: a file of length 0 is passed over")
    for child in vector.with_metadata:
        (place / child / "_metadata_acid").write_text(json.dumps({"thisFileVersion": "0", "dataFormat": "compacted"}))


def _check_twins(vector, found):
    """Results of two runs of one compaction: 4.0.1 reads both deltas, and the base that it lists first."""
    if vector.base:
        assert {found["base"], *found["obsolete"]} == {vector.base, *vector.obsolete}
    else:
        assert set(vector.deltas) <= set(found["deltas"]) <= {*vector.deltas, *vector.obsolete}


@pytest.mark.parametrize("vector", directory_vectors(), ids=lambda vector: vector.name)
def test_hive_4_selects_the_same(vector, hive, tmp_path):
    _make(tmp_path, vector)

    def ask():
        return hive.state(str(tmp_path), vector.write_ids.format(), vector.txns.format(),
                          is_compactor=isinstance(vector.write_ids, CompactorWriteIdList))

    if vector.error:
        with pytest.raises(JavaError, match="Not enough history"):
            ask()
        return
    found = ask()

    if vector.name == "B19":  # shows rows that are not committed (at X <= the first open id), which we do not imitate
        assert (found["base"], vector.base) == ("base_0000005", None)
        return
    if vector.name in ("B28", "B41", "B42", "B43", "B45", "B46", "B47"):
        _check_twins(vector, found)
        return
    assert found["base"] == vector.base
    assert tuple(found["deltas"]) == vector.deltas
    assert set(found["aborted"]) == vector.aborted
    assert found["mixed_aborts"] == vector.mixed_aborts
    files_too = {"bucket_00000"} if vector.name == "B33" else set()
    assert set(found["obsolete"]) - files_too == vector.obsolete
    originals = {"bucket_00000" if name.startswith("HIVE_") else name for name in vector.originals}
    assert set(found["originals"]) == originals
