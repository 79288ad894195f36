"""How a finished directory gets its final name where files are renamed, and where tasks upload to it: no Spark."""

from types import SimpleNamespace
from typing import Any

import pytest

from metastore.acid.names import DeltaName
from metastore.spark.write import acid_writer
from metastore.spark.write.acid_writer import Staged


class _Store:
    """Notes what is asked of it."""

    def __init__(self) -> None:
        self.spark = SimpleNamespace()
        self.calls: list[tuple[Any, ...]] = []

    def __getattr__(self, name: str) -> Any:
        return lambda *arguments: self.calls.append((name, *arguments))


def test_uploads_are_completed_when_their_directory_says_its_version(monkeypatch: pytest.MonkeyPatch) -> None:
    store, uploads = _Store(), [object()]
    monkeypatch.setattr(acid_writer, "complete", lambda _, given: store.calls.append(("complete", given)))

    Staged("s3a://b/t", DeltaName(1, 1, 0), "s3a://b/t/.stage/out/0", uploads=uploads).publish(store)  # type: ignore[arg-type]

    assert store.calls == [("write", "s3a://b/t/delta_0000001_0000001_0000/_orc_acid_version", b"2"), ("complete", uploads)]


def test_a_directory_without_uploads_is_renamed_as_it_is() -> None:
    store = _Store()

    Staged("/t/p=1", DeltaName(1, 1, 0), "/t/.stage/out/0").publish(store)  # type: ignore[arg-type]

    assert store.calls == [("mkdirs", "/t/p=1"), ("rename", "/t/.stage/out/0", "/t/p=1/delta_0000001_0000001_0000")]
