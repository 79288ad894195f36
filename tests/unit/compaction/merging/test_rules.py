"""Which files of a compaction are merged as they lie, and how many of them are open at a time."""

import pytest

from metastore.acid.bucket import decode, encode
from metastore.acid.orc_footer import RowKey
from metastore.compaction.merging.rules import (
    HIGHEST_IN_FILES,
    LARGE_STRIPE,
    MergedFile,
    Stripe,
    StripedFile,
    by_bucket,
    in_one_file,
    open_at_once,
    parts,
)
from metastore.compaction.working.rules import InputFile


def files(*names, bucket=0):
    return [InputFile(f"t/{name}/bucket_{bucket:05d}", bucket, 1, name.startswith("delete_")) for name in names]


def test_files_with_rows_by_bucket_in_the_order_of_their_lowest_write_ids():
    read = [*files("delta_7_8", "base_5", "delete_delta_9_9"), *files("delta_6_6", bucket=1), InputFile("t/delta_6_6/bucket_00000", 0, 0)]

    assert by_bucket(read) == [
        [MergedFile("t/base_5/bucket_00000", 0, 5), MergedFile("t/delete_delta_9_9/bucket_00000", 0, 9, is_of_deletes=True),
         MergedFile("t/delta_7_8/bucket_00000", 7, 8)],
        [MergedFile("t/delta_6_6/bucket_00001", 6, 6)]]


@pytest.mark.parametrize(("names", "most"), [
    ([], 0),
    (["base_5"], 1),
    (["base_-9223372036854775808", "delta_1_1"], 1),                            # of original files: their rows are of write id 0
    (["base_5", *(f"delta_{number}_{number}_0000" for number in range(6, 100))], 1),
    (["delta_6_6_0000", "delta_6_6_0001", "delta_7_7"], 2),                     # statements of a transaction
    (["delta_6_9", "delta_8_8", "delta_9_12"], 2),
    (["base_5", *(f"delete_delta_{number}_{number}" for number in range(6, 16))], 11),
    (["delete_delta_6_6", "delta_9_9"], 1),                                     # it names no row of a later write
])
def test_files_are_open_while_their_write_ids_are_passed(names, most):
    [bucket] = by_bucket(files(*names)) or [[]]
    assert open_at_once(bucket) == most


def test_of_a_file_in_no_base_and_no_delta_nothing_is_known():
    assert by_bucket([InputFile("t/out/0/bucket_00000", 0, 1)]) == [[MergedFile("t/out/0/bucket_00000", 0, HIGHEST_IN_FILES)]]


BIG = LARGE_STRIPE


def stripe(write_id, first, last, bucket=0, size=BIG, **more):
    lowest, highest = (RowKey(write_id, encode(bucket), row) for row in (first, last))
    return Stripe(last - first + 1, size, lowest, highest, highest)._replace(**more)


def striped(*stripes, form="f", rows=None):
    return StripedFile(str(stripes[0].lowest), sum(each.rows for each in stripes) if rows is None else rows, form, stripes)


ONE, OTHER = striped(stripe(1, 0, 9), stripe(1, 10, 19)), striped(stripe(2, 0, 9))


def test_stripes_are_copied_in_the_order_of_their_rows():
    assert in_one_file(0, [OTHER, ONE]) == [ONE, OTHER]
    assert in_one_file(0, [ONE]) == [ONE]
    assert in_one_file(0, [ONE, striped(stripe(2, 0, 9, size=3 * BIG), stripe(3, 0, 9, size=1))])


@pytest.mark.parametrize("files", [
    [],
    [ONE, OTHER._replace(form="")],
    [ONE._replace(form=""), OTHER._replace(form="")],
    [ONE, OTHER._replace(form="g")],
    [ONE, OTHER._replace(rows=11)],
    [ONE, striped(stripe(2, 0, 9, bucket=1))],
    [ONE, striped(stripe(2, 0, 9, highest=RowKey(2, encode(1), 9)))],
    [ONE, striped(stripe(1, 19, 25))],                                  # the last row of the one is the first of the other
    [ONE, striped(stripe(1, 12, 25))],
    [ONE, striped(stripe(2, 0, 9, size=BIG - 1))],
], ids=["none", "unknown form", "no form", "two forms", "a lost row", "another bucket", "two buckets", "twice", "overlap", "small"])
def test_rows_are_read_where_the_footers_do_not_prove_their_copy(files):
    assert in_one_file(0, files) == []


# Rows 0 to 9, 10 to 19 and 20 to 29 of bucket 0, 0 to 9 and 10 to 19 of bucket 1 under the same write id, and a file of a later one.
SEVERAL = [striped(stripe(1, 0, 9), stripe(1, 10, 19), stripe(1, 20, 29)), striped(stripe(1, 0, 9, bucket=1), stripe(1, 10, 19, bucket=1)),
           striped(stripe(2, 0, 9))]


@pytest.mark.parametrize(("files", "count", "begins"), [
    (SEVERAL[::-1], 6, [(1, 0, 10), (1, 0, 20), (1, 1, 0), (1, 1, 10), (2, 0, 0)]), (SEVERAL, 2, [(1, 1, 0)]), (SEVERAL, 1, []),
    ([striped(stripe(1, 0, 9))], 4, [(1, 0, 0)]), ([], 4, []),
])
def test_rows_are_parted_at_stripes(files, count, begins):
    assert [(key.write_id, decode(key.bucket).writer_id, key.row_id) for key in parts(files, count)] == begins
