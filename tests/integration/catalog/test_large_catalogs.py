"""No call that asks for a part of the catalog reads more because the whole is larger: pages, as PostgreSQL counts them."""

from urllib.parse import urlsplit

import pytest

from benchmarks.counted_calls import World
from benchmarks.large_catalog import PARTS, costs, fill
from benchmarks.wiretap import Wiretap
from metastore.client import MetastoreClient

MORE = 15
"""Pages that taller indexes and a few more pages of the same rows may cost; hundreds hold the whole."""


@pytest.fixture
def tap(postgres):
    address = urlsplit(postgres.postgres.tcp_url)
    with Wiretap(address.hostname, address.port) as listening:
        yield listening


@pytest.fixture
def url(postgres):
    with postgres.cloned() as cloned:
        yield urlsplit(postgres.postgres.tcp_url)._replace(path=urlsplit(cloned).path).geturl()


@pytest.fixture
def database_url(url, tap):
    address = urlsplit(url)
    return address._replace(netloc=address.netloc.replace(f":{address.port}", f":{tap.port}")).geturl()


def test_no_call_grows_with_what_it_does_not_ask_for(server, tap, url, tmp_path):
    with MetastoreClient(server.thrift_uri) as client:
        world = World(client)
        world.fill(tmp_path, many=0)
        fill(url, tables=(0, 20), partitions=(0, 100))
        before = costs(world, tap, url)
        fill(url, tables=(20, 2000), partitions=(100, 3000))
        after = costs(world, tap, url)

    assert before.keys() == PARTS.keys()
    assert {name: (before[name].pages, cost.pages) for name, cost in after.items()
            if cost.pages > before[name].pages + MORE} == {}
