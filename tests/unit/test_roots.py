"""Where something may be changed: texts, links, spellings."""

import pytest

from metastore.files import Files
from metastore.roots import OutsideError, Roots, spellings

ROOTS = Roots(("file:/wh", "s3a://b/wh", "hdfs://nn:8020/wh"))


@pytest.mark.parametrize(("location", "covered"), [
    ("/wh", True), ("/wh/a", True), ("file:///wh/a/", True), ("FILE:/wh//a", True), ("file://localhost/wh/a", True),
    ("/", False), ("/whx", False), ("/x/wh", False), ("/wh/../etc", False), ("/wh/a/../b", False), ("/wh/..", False),
    ("/wh/..a", True), ("s3a://b/wh/t", True), ("s3://b/wh/t", True), ("s3n://b//wh/t/", True), ("s3a://b/whx", False),
    ("s3a://c/wh/t", False), ("s3a://b/../c/wh/t", False), ("s3a://b?x/wh/t", False), ("hdfs://nn:8020/wh/t", True),
    ("hdfs://nn/wh/t", False), ("local:///wh/a", False), ("gs://b/wh/t", False), ("wh/a", False), ("", False),
    ("file://otherhost/wh/a", False), ("memory://wh/a", False)])
def test_covers(location, covered):
    assert ROOTS.covers(location) is covered
    if not covered:
        with pytest.raises(OutsideError, match=r"metastore\.warehouse\.roots"):
            ROOTS.require(location)


@pytest.mark.parametrize(("location", "same"), [
    ("s3a://b/x:y", ["s3://b/x:y", "s3a://b/x:y", "s3n://b/x:y"]), ("abfs://c@a/x", ["abfs://c@a/x", "abfss://c@a/x"]),
    ("hdfs://nn/x", ["hdfs://nn/x"]), ("file:/x", ["file:/x"])])
def test_spellings(location, same):
    assert spellings(location) == same


def test_a_root_itself_is_not_inside():
    assert [ROOTS.covers(root, inside=True) for root in ("/wh", "s3a://b/wh/", "/wh/a")] == [False, False, True]


def test_no_roots_cover_nothing():
    assert not Roots(()).covers("/")


def changes(uri):
    """Everything that changes something."""
    return [lambda files: files.mkdirs(uri), lambda files: files.write(uri, b""), lambda files: files.create(uri),
            lambda files: files.delete(uri), lambda files: files.delete_children(uri)]


@pytest.mark.parametrize("path", ["out", "wh/link/x", "wh/link", "wh/../out", "wh/a/../../out"])
def test_files_beyond_the_roots_stay(tmp_path, path):
    outside, warehouse = tmp_path / "out", tmp_path / "wh"
    outside.mkdir()
    (warehouse / "a").mkdir(parents=True)
    (outside / "kept").write_text("x")
    (warehouse / "link").symlink_to(outside)
    files, uri = Files(roots=Roots((warehouse.as_uri(),))), f"file:{tmp_path}/{path}"
    for change in changes(uri)[1:]:
        with pytest.raises(OutsideError):
            change(files)
    for source, target in ((uri, f"{warehouse}/b"), (f"{warehouse}/a", f"{uri}/b")):
        with pytest.raises(OutsideError):
            files.rename(source, target)
    with pytest.raises(OutsideError):
        files.mkdirs(f"{uri}/new")
    assert not files.mkdirs(str(outside))  # it is there: nothing is made
    assert [entry.path for entry in files.listing(str(outside))] == ["kept"]
    assert sorted(child.name for child in warehouse.iterdir()) == ["a", "link"]


def test_remote_files_beyond_the_roots_stay():
    everywhere, files = Files(), Files(roots=Roots(("memory://wh",)))
    everywhere.write("memory://out/d/f", b"x")
    for change in changes("memory://out/d/f"):
        with pytest.raises(OutsideError):
            change(files)
    assert not files.mkdirs("memory://out/d")
    files.write("memory://wh/f", b"x")
    files.delete("memory://wh/f")
    assert everywhere.read("memory://out/d/f") == b"x"
    everywhere.delete("memory://out")


def test_one_file_system_inside_another_is_no_location():
    with pytest.raises(OSError, match="::"):
        Files().exists("memory://a::file:///etc")
