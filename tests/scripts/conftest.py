"""One server for all scripts that want the same settings; each script begins with an empty database."""

from contextlib import ExitStack

import pytest


@pytest.fixture(scope="session")
def worlds(postgres, tmp_path_factory):
    """``worlds(settings)``: an empty server with these settings."""
    from tests.support.scripts.server import served

    with ExitStack() as running:
        known = {}

        def world(settings):
            key = tuple(sorted(settings.items()))
            if key not in known:
                url = running.enter_context(postgres.cloned())
                known[key] = running.enter_context(served(url, tmp_path_factory.mktemp("warehouse"), settings))
            known[key].reset()
            return known[key]
        yield world
