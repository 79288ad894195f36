"""A lake of tables over a database of its own."""

import pytest

from tests.support.lake import Lake


@pytest.fixture
def lake(database, tmp_path):
    return Lake(database, tmp_path)


@pytest.fixture
def new_lake(database, tmp_path):
    """A lake with settings of its own."""
    return lambda **settings: Lake(database, tmp_path, **settings)
