"""A lake of tables over a database of its own."""

from threading import Lock

import pytest

from tests.support.lake import Lake


class Catalogued(Lake):
    """Whatever is asked for is there, and transactional."""

    _making = Lock()

    def request(self, kind="major", what="d.t", **more):
        table, _, partition = what.removeprefix("d.").partition("/")
        with self._making:
            self.table(table, keys=[partition.partition("=")[0]] if partition else ())
            if partition:
                self.partition(partition, table)
        return super().request(kind, what, **more)

    def table(self, name="t", **fields):
        if not self.db.once("SELECT 1 FROM tables WHERE name = %s", [name]):
            super().table(name, **fields)
        return f"d.{name}"

    def partition(self, name, table="t", **parameters):
        if not self.db.once("SELECT 1 FROM partitions WHERE name = %s", [name]):
            super().partition(name, table, **parameters)
        return f"d.{table}/{name}"


@pytest.fixture
def lake(database, tmp_path):
    return Catalogued(database, tmp_path)


@pytest.fixture
def new_lake(database, tmp_path):
    """Return a function that makes a lake with settings of its own."""
    return lambda **settings: Catalogued(database, tmp_path, **settings)
