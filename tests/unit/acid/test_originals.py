"""ROW__IDs of rows without ACID columns."""

import pytest

from metastore.acid.bucket import encode
from metastore.acid.originals import synthetic_ids
from metastore.errors import InvalidOperationError


def _first_ids(files: list[tuple[str, int]], **where: int) -> list[tuple[str, int, int, int]]:
    return [tuple(one) for one in synthetic_ids(files, **where)]


def test_positions_run_on_over_the_files_of_a_bucket() -> None:
    assert _first_ids([("000000_0", 2), ("000000_0_copy_1", 1), ("000001_0", 1)]) == [
        ("000000_0", 0, 536870912, 0),
        ("000000_0_copy_1", 0, 536870912, 2),
        ("000001_0", 0, 536936448, 0),
    ]


def test_files_are_ordered_by_path_as_text() -> None:
    files = [("000000_0_copy_2", 1), ("000000_0_copy_10", 1), ("000000_0", 2)]

    assert [(path, first) for path, _, _, first in _first_ids(files)] == [
        ("000000_0", 0), ("000000_0_copy_10", 2), ("000000_0_copy_2", 3)
    ]


def test_sub_directories_come_in_path_order() -> None:
    assert _first_ids([("HIVE_UNION_SUBDIR_1/000000_0", 1), ("000000_0", 2)])[1][3] == 2


def test_loaded_files_have_the_write_id_and_statement_of_their_directory() -> None:
    assert _first_ids([("000000_0", 2)], write_id=3, statement_id=0) == [("000000_0", 3, 536870912, 0)]
    assert _first_ids([("000002_0", 1)], write_id=3, statement_id=1) == [("000002_0", 3, 537001985, 0)]
    assert _first_ids([("000000_0", 2)], write_id=4) == [("000000_0", 4, encode(0), 0)]


def test_a_file_without_a_bucket_number_is_refused() -> None:
    with pytest.raises(InvalidOperationError, match="a/random has no bucket number"):
        synthetic_ids([("a/random", 1)])
