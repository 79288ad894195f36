"""Files on the local disk, and on a store of fsspec's that behaves as an object store does."""

import uuid

import pytest
from fsspec.implementations.memory import MemoryFileSystem

from metastore import files
from metastore.files import Files
from metastore.roots import local_path

FILES = Files()


@pytest.fixture(params=["path", "file:", "file://", "memory", "objects"])
def root(request, tmp_path, monkeypatch):
    """Return the address of an empty place, in each spelling; "objects" are without directories."""
    if request.param == "objects":
        monkeypatch.setattr(files, "_OBJECT_STORES", {"memory"})
    if request.param in ("memory", "objects"):
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


def test_mkdirs_says_whether_it_did(root, request):
    has_directories = "objects" not in request.node.callspec.id
    assert FILES.mkdirs(f"{root}/a/b") is has_directories
    assert not FILES.mkdirs(f"{root}/a/b")
    assert FILES.exists(f"{root}/a") is has_directories


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


class Objects:
    """What s3fs answers where somebody made directories: "t/", and "t/d/" with a file in it. ``refuses``: it removes nothing."""

    def __init__(self, refuses=False):
        self.keys, self.refuses = {"b/t/": 0, "b/t/d/": 0, "b/t/d/f": 3}, refuses

    def _strip_protocol(self, key):
        return key

    def find(self, key, withdirs=False, detail=False):
        found = {name: {"type": "file", "size": size} for name, size in self.keys.items() if name.startswith(f"{key}/")}
        directories = {"b/t/d": {"type": "directory", "size": 0}} if withdirs and "b/t/d/f" in self.keys else {}
        return {**found, **directories} if detail else sorted(found)

    def ls(self, key, detail):
        return {"b/t": ["b/t/", "b/t/d"], "b/t/d": ["b/t/d/", "b/t/d/f"]}[key]

    def isdir(self, key):
        return key in ("b/t", "b/t/d")

    def split_path(self, key):
        return (*key.split("/", 1), None)

    def call_s3(self, call, Bucket, Key, Body):  # noqa: N803 - S3's names
        assert (call, Body) == ("put_object", b"")
        self.keys[f"{Bucket}/{Key}"] = 0

    def exists(self, key):
        return any(name.startswith(key) for name in self.keys)

    def rm(self, key, recursive):
        if not self.refuses:
            self.keys = {name: size for name, size in self.keys.items() if not name.startswith(key)}


@pytest.fixture
def objects(monkeypatch):
    """``objects(fs)``: what s3a://b is."""
    def use(fs):
        def found(url, **options):
            assert options == {"use_listings_cache": False}, "fsspec answers from its memory otherwise"
            return fs, url.removeprefix("s3://")
        monkeypatch.setattr("fsspec.core.url_to_fs", found)
        return fs
    return use


def test_empty_objects_that_stand_for_directories_are_not_files(objects):
    objects(Objects())
    assert FILES.listing("s3a://b/t") == [("d", 0, True), ("d/f", 3, False)]
    assert FILES.children("s3a://b/t") == ["d"]
    assert FILES.children("s3a://b/t/d") == ["f"]
    with pytest.raises(OSError, match="not empty"):
        FILES.delete("s3a://b/t", recursive=False)
    FILES.delete_children("s3a://b/t")
    assert not FILES.exists("s3a://b/t/d")


def test_a_directory_that_is_made_on_s3_is_there_for_spark(objects):
    fs = objects(Objects())
    assert not FILES.mkdirs("s3a://b/t")
    assert FILES.mkdirs("s3a://b/new")
    assert fs.keys["b/new/"] == 0


def test_a_store_that_quietly_removes_nothing_is_found_out(objects):
    objects(Objects(refuses=True))
    with pytest.raises(OSError, match="b/t/d cannot be removed"):
        FILES.delete("s3a://b/t/d")


@pytest.mark.parametrize("root", ["objects"], indirect=True)
def test_what_looks_like_a_pattern_is_a_name(root):
    """fsspec would remove what matches: the directory of another table."""
    for name in ("t[1]/d/f", "t1/d/f", "t?/f", "x1/f", "x[1]/f"):
        FILES.write(f"{root}/{name}", name.encode())
    FILES.delete(f"{root}/t[1]/d")
    FILES.delete(f"{root}/t?")
    FILES.delete_children(f"{root}/t[1]")
    FILES.rename(f"{root}/x[1]", f"{root}/y[1]")
    assert [FILES.files_of(f"{root}/{name}") for name in ("t1", "x1", "y[1]")] == [
        [f"{root}/t1/d/f"], [f"{root}/x1/f"], [f"{root}/y[1]/f"]]
    assert [FILES.exists(f"{root}/{name}") for name in ("t[1]", "t?", "x[1]")] == [False] * 3


def test_errors_of_a_store_s_library_are_errors_of_the_system(objects):
    class NoCredentialsError(Exception):
        pass

    fs = objects(Objects())
    fs.exists = lambda key: (_ for _ in ()).throw(NoCredentialsError("Unable to locate credentials"))
    with pytest.raises(OSError, match="s3a://b/t: NoCredentialsError: Unable to locate credentials"):
        FILES.exists("s3a://b/t")


@pytest.mark.parametrize("move", [True, False])
def test_put_over_what_is_there(root, move):
    FILES.write(f"{root}/t/p/f", b"new")
    FILES.write(f"{root}/kept/f", b"old")
    before = dict(FILES.changed(f"{root}/kept"))["f"]
    FILES.put_over(f"{root}/t/p/f", f"{root}/kept/f", move=move)
    assert FILES.exists(f"{root}/t/p/f") is not move
    assert [(name, at >= before) for name, at in FILES.changed(f"{root}/kept")] == [("f", True)]
    assert FILES.read(f"{root}/kept/f") == b"new"
    assert FILES.changed(f"{root}/nope") == []


def test_put_over_on_another_device_is_never_seen_half(root, monkeypatch):
    monkeypatch.setattr(files, "_device", str)
    FILES.write(f"{root}/t/f", b"x")
    FILES.put_over(f"{root}/t/f", f"{root}/kept/f_1", move=True)
    assert (FILES.files_of(f"{root}/t"), FILES.children(f"{root}/kept")) == ([], ["f_1"])


@pytest.mark.parametrize("target", ["memory://other/f", "nope://x/f"])
def test_put_over_in_another_file_system(target, tmp_path):
    (tmp_path / "f").write_text("x")
    with pytest.raises(OSError):
        FILES.put_over(f"file:{tmp_path}/f", target, move=True)
    assert (tmp_path / "f").exists()


def test_files_of_a_directory_and_of_a_file(root):
    FILES.write(f"{root}/t/a%20b", b"x")
    FILES.write(f"{root}/t/deep/c", b"x")
    assert FILES.files_of(f"{root}/t/") == [f"{root}/t/a%20b", f"{root}/t/deep/c"]
    assert FILES.files_of(f"{root}/t/deep/c") == [f"{root}/t/deep/c"]
    assert FILES.files_of(f"{root}/nope") == []


def test_checksum(root, monkeypatch):
    """Of an object with an ETag as Hadoop's EtagChecksum says."""
    FILES.write(f"{root}/f", b"x")
    assert FILES.checksum(f"{root}/f") == "9dd4e461268c8034f5c8564e155c67a6"
    if root.startswith("memory"):
        info = MemoryFileSystem.info
        monkeypatch.setattr(MemoryFileSystem, "info", lambda self, path, **more: {**info(self, path, **more), "ETag": '"9b2c-2"'})
        assert FILES.checksum(f"{root}/f") == b"9b2c-2".hex()


def test_hdfs_has_a_checksum_of_its_own(monkeypatch):
    monkeypatch.setattr("fsspec.core.url_to_fs", lambda *_, **__: (None, "/f"))
    with pytest.raises(OSError, match="cannot be kept for replicas"):
        FILES.checksum("hdfs://nn/f")
