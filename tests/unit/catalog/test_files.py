"""Files on the local disk, and on a store of fsspec's that behaves as an object store does."""

import uuid

import pytest

from metastore.files import Files, local_path

FILES = Files()


@pytest.fixture(params=["path", "file:", "file://", "memory"])
def root(request, tmp_path):
    """An empty place, in each spelling."""
    if request.param == "memory":
        return f"memory://{uuid.uuid4().hex}"
    return {"path": "", "file:": "file:", "file://": "file://"}[request.param] + str(tmp_path / "x y%2F")


@pytest.mark.parametrize(("uri", "path"), [
    ("/a/b", "/a/b"), ("file:/a", "/a"), ("file:///a", "/a"), ("file://localhost/a", "/a"), ("FILE:/a", "/a"),
    ("/a:b", "/a:b"), ("file:/p=a%2Fb", "/p=a%2Fb"), ("s3a://b/k", None), ("hdfs://nn/x", None)])
def test_local_path(uri, path):
    found = local_path(uri)
    assert (found and str(found)) == path


@pytest.mark.parametrize("uri", ["relative", "file:relative", "file://otherhost/a"])
def test_not_local(uri):
    with pytest.raises(OSError, match=uri):
        local_path(uri)


def test_unknown_file_system():
    with pytest.raises(OSError, match="nope"):
        FILES.exists("nope://x/y")


def test_mkdirs_says_whether_it_did(root):
    assert FILES.mkdirs(f"{root}/a/b")
    assert not FILES.mkdirs(f"{root}/a/b")
    assert FILES.exists(f"{root}/a")


def test_write_read_delete(root):
    FILES.write(f"{root}/p=a%3Ab/f", b"one")
    FILES.write(f"{root}/p=a%3Ab/f", b"two")
    assert FILES.read(f"{root}/p=a%3Ab/f") == b"two"
    assert FILES.children(root) == ["p=a%3Ab"]
    FILES.delete(f"{root}/p=a%3Ab/f")
    FILES.delete(f"{root}/p=a%3Ab/f")
    assert not FILES.exists(f"{root}/p=a%3Ab/f")


def test_open_reads_from_any_position(root):
    FILES.write(f"{root}/f", b"abcdef")
    with FILES.open(f"{root}/f") as file:
        assert file.seek(-2, 2) == 4
        assert file.read() == b"ef"


def test_delete_of_a_full_directory_is_asked_for(root):
    FILES.write(f"{root}/d/f", b"x")
    with pytest.raises(OSError):
        FILES.delete(f"{root}/d", recursive=False)
    assert FILES.exists(f"{root}/d/f")
    FILES.delete(f"{root}/d")
    assert not FILES.exists(f"{root}/d")
    FILES.mkdirs(f"{root}/empty")
    FILES.delete(f"{root}/empty", recursive=False)
    assert not FILES.exists(f"{root}/empty")


def test_delete_children(root):
    FILES.write(f"{root}/d/a/b", b"x")
    FILES.write(f"{root}/d/c", b"x")
    FILES.delete_children(f"{root}/d")
    FILES.delete_children(f"{root}/absent")
    assert FILES.children(f"{root}/d") == FILES.children(f"{root}/absent") == []


def test_rename(root):
    FILES.write(f"{root}/a/deep/f", b"x")
    FILES.rename(f"{root}/a", f"{root}/b/c")
    assert FILES.read(f"{root}/b/c/deep/f") == b"x"
    assert not FILES.exists(f"{root}/a/deep/f")
    FILES.write(f"{root}/a/f", b"y")
    with pytest.raises(FileExistsError):
        FILES.rename(f"{root}/a", f"{root}/b/c")
    assert FILES.read(f"{root}/a/f") == b"y"


def test_rename_to_another_file_system(tmp_path):
    FILES.write("memory://other/f", b"x")
    with pytest.raises(OSError, match="no file system|another file system"):
        FILES.rename("memory://other/f", "nope://x/f")


def test_listing(root):
    FILES.write(f"{root}/p=1/f", b"abc")
    FILES.write(f"{root}/g", b"")
    found = FILES.listing(root)
    assert [(entry.path, entry.size, entry.is_dir) for entry in found if not entry.is_dir] == [("g", 0, False), ("p=1/f", 3, False)]
    assert [entry.path for entry in found if entry.is_dir] == ["p=1"]
    assert FILES.listing(f"{root}/absent") == []


def test_links_are_not_followed_when_deleting(tmp_path):
    FILES.write(str(tmp_path / "kept" / "f"), b"x")
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "link").symlink_to(tmp_path / "kept")
    (tmp_path / "link").symlink_to(tmp_path / "kept")
    FILES.delete(str(tmp_path / "d"))
    FILES.delete(str(tmp_path / "link"))
    assert (tmp_path / "kept" / "f").exists()
    assert not (tmp_path / "link").is_symlink()
