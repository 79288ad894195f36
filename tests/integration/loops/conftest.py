"""A lake of tables over a database of its own."""

import pytest

from metastore.files import Files
from tests.support.lake import Lake


@pytest.fixture
def lake(database, tmp_path):
    return Lake(database, tmp_path)


@pytest.fixture
def new_lake(database, tmp_path):
    """Return a function that makes a lake with settings of its own."""
    return lambda **settings: Lake(database, tmp_path, **settings)


class Broken(Files):
    """Deletes nothing whose name contains ``stuck``."""

    stuck = ""
    silent = False

    def delete(self, uri, *, recursive=True):
        if type(self).stuck and type(self).stuck in uri:
            if self.silent:
                return
            raise PermissionError(f"{uri}: permission denied")
        super().delete(uri, recursive=recursive)


@pytest.fixture
def broken(monkeypatch):
    def make(stuck, silent=False):
        monkeypatch.setattr(Broken, "stuck", stuck)
        monkeypatch.setattr(Broken, "silent", silent)
        return Broken()

    return make
