"""Publishing where a rename is a copy of file after file, as on object stores: half of one is never seen."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from metastore.errors import MetastoreError
from metastore.spark.jvm.hadoop import Hadoop
from metastore.spark.write.acid_writer import LeftoverError

pytestmark = pytest.mark.spark

KINDS = {"full ACID": "'transactional'='true'", "insert-only": "'transactional'='true', 'transactional_properties'='insert_only'"}


class Store:
    """``dies_at``: the published file at which copying stops; ``is_gone``: nothing can be removed any more."""

    def __init__(self) -> None:
        self.dies_at: int | None = None
        self.is_gone = False
        self.copied = 0

    def rename(self, hadoop: Hadoop, source: str, target: str, real: Callable[..., None]) -> None:
        if ".acid_stage" in target:
            real(hadoop, source, target)
            return
        if hadoop.exists(target):
            raise FileExistsError(target)
        hadoop.mkdirs(target)
        for child, _ in sorted(hadoop.children(source)):
            if self.copied == self.dies_at:
                raise OSError("the connection to the store is lost")
            hadoop.write(f"{target}/{child}", hadoop.read(f"{source}/{child}"))
            self.copied += 1
        hadoop.delete(source)

    def delete(self, hadoop: Hadoop, path: str, real: Callable[..., None]) -> None:
        if self.is_gone and self.copied == self.dies_at:
            raise OSError("the store does not answer")
        real(hadoop, path)


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    given, rename, delete = Store(), Hadoop.rename, Hadoop.delete
    with monkeypatch.context() as patch:
        patch.setattr(Hadoop, "rename", lambda hadoop, source, target: given.rename(hadoop, source, target, rename))
        patch.setattr(Hadoop, "delete", lambda hadoop, path: given.delete(hadoop, path, delete))
        yield given


def _ids(session: Any, name: str) -> list[int]:
    return sorted(row[0] for row in session.table(name).collect())


def _directories(session: Any, name: str) -> list[str]:
    place = Path(session.client.get_table(*name.split(".")).sd.location.removeprefix("file:").replace("///", "/"))
    return sorted(path.name for path in place.iterdir() if path.name.startswith(("base_", "delta_", "delete_")))


@pytest.mark.parametrize("kind", KINDS)
def test_a_commit_is_whole_and_half_a_copy_is_nothing(acid_session: Any, db: str, store: Store, kind: str) -> None:
    name = f"{db}.t"
    acid_session.sql(f"CREATE TABLE {name} (id INT) CLUSTERED BY (id) INTO 3 BUCKETS STORED AS ORC TBLPROPERTIES ({KINDS[kind]})")
    acid_session.sql(f"INSERT INTO {name} SELECT id FROM range(10)")
    assert _ids(acid_session, name) == [*range(10)]

    store.dies_at = store.copied + 2
    with pytest.raises(OSError, match="connection to the store is lost"):
        acid_session.sql(f"INSERT INTO {name} SELECT id + 10 FROM range(10)")
    assert _directories(acid_session, name) == ["delta_0000001_0000001_0000"]

    store.dies_at, store.is_gone = store.copied + 2, True
    with pytest.raises((OSError, MetastoreError), match="cannot be removed|does not answer"):
        acid_session.sql(f"INSERT INTO {name} SELECT id + 20 FROM range(10)")
    assert _directories(acid_session, name) == ["delta_0000001_0000001_0000", "delta_0000003_0000003_0000"], "half of it is there"
    assert _ids(acid_session, name) == [*range(10)], "and nobody sees it"

    store.dies_at, store.is_gone = None, False
    acid_session.sql(f"INSERT OVERWRITE TABLE {name} SELECT id + 30 FROM range(10)")
    assert _ids(acid_session, name) == [*range(30, 40)]


def test_half_a_statement_is_not_committed_with_the_others_of_its_transaction(acid_session: Any, db: str, store: Store) -> None:
    name = f"{db}.t"
    acid_session.sql(f"CREATE TABLE {name} (id INT) CLUSTERED BY (id) INTO 3 BUCKETS STORED AS ORC TBLPROPERTIES ({KINDS['full ACID']})")
    with acid_session.transaction():
        acid_session.sql(f"INSERT INTO {name} SELECT id FROM range(10)")
        store.dies_at = store.copied + 2
        with pytest.raises(OSError, match="is lost"):
            acid_session.sql(f"INSERT INTO {name} SELECT id + 10 FROM range(10)")
    assert _ids(acid_session, name) == [*range(10)]

    store.dies_at, store.is_gone = None, True
    with pytest.raises(MetastoreError), acid_session.transaction():
        acid_session.sql(f"INSERT INTO {name} VALUES (99)")
        store.dies_at = store.copied + 2
        with pytest.raises((LeftoverError, OSError)):
            acid_session.sql(f"INSERT INTO {name} SELECT id + 10 FROM range(10)")
        store.dies_at = None
    assert _ids(acid_session, name) == [*range(10)], "what cannot be undone is not committed"
