"""Fixtures: a database of the test's own, and a listener between it and the server; modules that count import them."""

from urllib.parse import urlsplit

import pytest

from benchmarks.wiretap import Wiretap

__all__ = ["database_url", "direct_url", "tap"]


@pytest.fixture
def tap(postgres):
    address = urlsplit(postgres.postgres.tcp_url)
    with Wiretap(address.hostname, address.port) as listening:
        yield listening


@pytest.fixture
def direct_url(postgres):
    """Past the listener."""
    with postgres.cloned() as cloned:
        yield urlsplit(postgres.postgres.tcp_url)._replace(path=urlsplit(cloned).path).geturl()


@pytest.fixture
def database_url(direct_url, tap):
    """Through the listener: `server` and `database` have it from here."""
    address = urlsplit(direct_url)
    return address._replace(netloc=address.netloc.replace(f":{address.port}", f":{tap.port}")).geturl()
