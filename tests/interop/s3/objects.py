"""The server's own view of S3 (metastore/files.py), beside others who write and remove there at the same time."""

from uuid import uuid4

import pytest

from metastore.files import Files

FILES = Files()


@pytest.fixture
def place(store):
    """(prefix of keys, URI) of an empty place."""
    prefix = f"files/{uuid4().hex}"
    return prefix, f"s3a://{store.bucket}/{prefix}"


def put(store, key, content=b""):
    store.client.put_object(Bucket=store.bucket, Key=key, Body=content)


def test_what_others_write_and_remove_is_seen_at_once(store, place):
    prefix, uri = place
    FILES.write(f"{uri}/d/p=a%3Ab/f", b"abc")
    assert FILES.listing(uri) == [("d", 0, True), ("d/p=a%3Ab", 0, True), ("d/p=a%3Ab/f", 3, False)]
    assert FILES.children(uri) == ["d"]
    assert not FILES.exists(f"{uri}/e")
    put(store, f"{prefix}/e/f", b"12")
    assert FILES.children(uri) == ["d", "e"]
    assert FILES.exists(f"{uri}/e")
    FILES.delete(f"{uri}/e")
    assert store.keys(prefix) == [f"{prefix}/d/p=a%3Ab/f"]
    store.client.delete_object(Bucket=store.bucket, Key=f"{prefix}/d/p=a%3Ab/f")
    assert FILES.listing(uri) == []
    assert not FILES.exists(f"{uri}/d")


def test_empty_objects_of_hadoop_stand_for_directories(store, place):
    prefix, uri = place
    put(store, f"{prefix}/")
    put(store, f"{prefix}/d/")
    put(store, f"{prefix}/d/f", b"x")
    put(store, f"{prefix}/empty/")
    assert FILES.listing(uri) == [("d", 0, True), ("d/f", 1, False), ("empty", 0, True)]
    assert FILES.children(uri) == ["d", "empty"]
    FILES.delete(f"{uri}/empty", recursive=False)
    with pytest.raises(OSError, match="not empty"):
        FILES.delete(f"{uri}/d", recursive=False)
    FILES.delete(uri)
    assert "Contents" not in store.client.list_objects_v2(Bucket=store.bucket, Prefix=prefix)


def test_what_looks_like_a_pattern_is_a_name(store, place):
    """With the empty objects of Hadoop, and a neighbour that the name would match."""
    prefix, uri = place
    for key in ("t[1]/", "t[1]/d/", "t[1]/d/f", "t1/d/f"):
        put(store, f"{prefix}/{key}", b"x" if key.endswith("f") else b"")
    FILES.delete(f"{uri}/t[1]/d")
    assert not FILES.exists(f"{uri}/t[1]/d")
    FILES.delete(f"{uri}/t[1]")
    assert store.keys(prefix) == [f"{prefix}/t1/d/f"]


def test_a_directory_that_is_made_is_there_for_hadoop(store, place):
    prefix, uri = place
    assert FILES.mkdirs(f"{uri}/t")
    assert not FILES.mkdirs(f"{uri}/t")
    assert [one["Key"] for one in store.client.list_objects_v2(Bucket=store.bucket, Prefix=prefix)["Contents"]] == [f"{prefix}/t/"]
    assert FILES.listing(uri) == [("t", 0, True)]
    put(store, f"{prefix}/u/f", b"x")
    assert not FILES.mkdirs(f"{uri}/u")
    FILES.delete(f"{uri}/t", recursive=False)
    assert not FILES.exists(f"{uri}/t")


def test_directories_move(store, place):
    prefix, uri = place
    put(store, f"{prefix}/a/")
    for number in range(12):
        FILES.write(f"{uri}/a/deep/{number}", b"%d" % number)
    FILES.write(f"{uri}/ab", b"another")
    FILES.rename(f"{uri}/a", f"{uri}/b/c")
    assert store.keys(prefix) == sorted([f"{prefix}/ab", *(f"{prefix}/b/c/deep/{number}" for number in range(12))])
    assert FILES.read(f"{uri}/b/c/deep/7") == b"7"
    with pytest.raises(FileExistsError):
        FILES.rename(f"{uri}/ab", f"{uri}/b/c")
    assert not FILES.exists(f"{uri}/a"), "its marker is gone as well"


def test_parts_of_a_file_and_a_file_written_piece_by_piece(store, place):
    prefix, uri = place
    with FILES.create(f"{uri}/f") as out:
        out.write(b"abc")
        assert store.keys(prefix) == [], "nobody sees half of it"
        out.write(b"def")
    with FILES.open(f"{uri}/f") as file:
        assert file.seek(-2, 2) == 4
        assert file.read() == b"ef"
    with pytest.raises(FileExistsError):
        FILES.create(f"{uri}/f")


def test_a_bucket_that_is_not_there(store):
    with pytest.raises(OSError, match="bucket does not exist"):
        FILES.listing("s3a://nowhere/x")
    with pytest.raises(OSError, match="bucket does not exist"):
        FILES.write("s3a://nowhere/x", b"1")


def test_a_file_that_is_kept_for_replicas_goes_to_another_bucket_and_counts_from_then(store, place):
    """Its checksum is what Hadoop's S3A makes of the ETag."""
    prefix, uri = place
    store.client.create_bucket(Bucket="kept")
    put(store, f"{prefix}/d/p/bucket_0", b"x")
    [entry] = store.client.list_objects_v2(Bucket=store.bucket, Prefix=prefix)["Contents"]
    [file] = FILES.files_of(f"{uri}/d")
    assert (file, FILES.files_of(file)) == (f"{uri}/d/p/bucket_0", [f"{uri}/d/p/bucket_0"])
    assert FILES.checksum(file) == entry["ETag"].strip('"').encode().hex()
    for move in (False, True):
        FILES.put_over(file, "s3://kept/cm/bucket_0_1", move=move)
        assert FILES.exists(file) is not move
    [(name, changed)] = FILES.changed("s3a://kept/cm")
    assert (name, changed >= entry["LastModified"]) == ("bucket_0_1", True)
    assert FILES.read("s3a://kept/cm/bucket_0_1") == b"x"
    assert FILES.changed("s3a://kept/none") == []
