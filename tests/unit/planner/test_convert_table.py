"""Names that files get when their table becomes transactional."""

from metastore.planner.convert_table import renames


def test_only_files_without_a_bucket_are_renamed_and_no_number_is_used_twice() -> None:
    paths = ["part-00001-a.orc", "000000_0", "part-00000-a.orc", "000002_0_copy_1", "000002_0", "sub/part-00000-a.orc"]

    assert [tuple(one) for one in renames(paths)] == [
        ("part-00000-a.orc", "000001_0"), ("part-00001-a.orc", "000003_0"), ("sub/part-00000-a.orc", "sub/000004_0")]


def test_a_bucket_number_has_twelve_bits() -> None:
    names = [one.new for one in renames(f"part-{number:05d}" for number in range(4098))]

    assert names[4095:] == ["004095_0", "000000_0_copy_1", "000001_0_copy_1"]
