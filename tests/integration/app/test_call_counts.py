"""What each call costs in round trips, statements, waits for the disk and bytes: ``benchmarks/call_counts.txt``."""

from urllib.parse import urlsplit

import pytest

from benchmarks.call_counts import Counts, expected, measured
from benchmarks.wiretap import Wiretap
from metastore.client import MetastoreClient

AGAIN = "If that is meant, write the table anew: python -m benchmarks.call_counts --write"


@pytest.fixture
def tap(postgres):
    address = urlsplit(postgres.postgres.tcp_url)
    with Wiretap(address.hostname, address.port) as listening:
        yield listening


@pytest.fixture
def database_url(postgres, tap):
    """Through the listener: `server` and `database` have it from here."""
    with postgres.cloned() as url:
        address = urlsplit(postgres.postgres.tcp_url)
        netloc = address.netloc.replace(f":{address.port}", f":{tap.port}")
        yield address._replace(netloc=netloc, path=urlsplit(url).path).geturl()


def test_a_call_costs_what_is_written_down(server, tap, tmp_path):
    with MetastoreClient(server.thrift_uri) as client:
        counted = measured(client, tap, tmp_path)
    kept = expected()

    assert counted.keys() == kept.keys(), AGAIN
    different = {name: (kept[name], now) for name, now in counted.items() if now.differs(kept[name])}
    assert not different, AGAIN


@pytest.mark.parametrize("now", [Counts(2, 1, 1, 500, 500), Counts(1, 2, 1, 500, 500), Counts(1, 1, 2, 500, 500),
                                 Counts(1, 1, 1, 800, 500), Counts(1, 1, 1, 500, 800), Counts(0, 1, 1, 500, 500)])
def test_what_differs(now):
    assert now.differs(Counts(1, 1, 1, 500, 500))


def test_ids_may_have_more_digits():
    assert not Counts(1, 1, 1, 560, 620).differs(Counts(1, 1, 1, 500, 500))
