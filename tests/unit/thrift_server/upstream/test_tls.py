"""The upstream speaks TLS: what passes through is the same, and who is not believed gets nothing."""

from contextlib import contextmanager

import pytest

from metastore.config import ServerSettings, TlsSettings, UpstreamSettings
from metastore.errors import InvalidInputError
from metastore.thrift_gen.hive_metastore import ttypes
from metastore.thrift_server.upstream.client import UpstreamClient
from metastore.thrift_server.upstream.endpoint import Upstream
from tests.support.certificates import Authority
from tests.support.thrift_server import Peer, message, serving, text_field, until
from tests.unit.thrift_server.upstream.test_forwarding import Catalog, Own, client_of


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("certificates"))


@contextmanager
def in_front(authority, *, there=None, **upstream):
    """Serve in front of another catalog's server that speaks TLS; ``there``: that server's settings, ``upstream``: ours."""
    theirs = TlsSettings(**{"use_ssl": True, "keystore": (str(authority.server()),), "truststore": (str(authority.path),),
                            **(there or {})})
    catalog = Catalog()
    with serving(catalog, tls=theirs) as behind:
        settings = UpstreamSettings(**{"uris": ("thrift://{}:{}".format(*behind.address),), "use_ssl": True,
                                       "truststore": (str(authority.path),), **upstream})
        with serving(Own(), upstream=settings) as server:
            server.catalog, server.asking = catalog, UpstreamClient(Upstream(settings, ServerSettings()))
            yield server


def test_answers_pass_whole_small_and_large(authority):
    with in_front(authority) as server, client_of(server) as client:
        assert client.get_table("d", "t").parameters == {"text": "x" * 100}
        assert client.get_all_tables("d") == [f"d{number}" for number in range(200_000)]
        with pytest.raises(ttypes.NoSuchObjectException):
            client.get_table("d", "missing")
        assert len({peer for name, peer, _ in server.catalog.seen if name == "get_table"}) == 1


def test_a_request_that_the_upstream_takes_in_pieces(authority):
    with in_front(authority) as server, client_of(server) as client:
        client.drop_table("d", "v" * 3_000_000, False)
        assert [len(one[1]) for one in server.catalog.seen if one[0] == "drop_table"] == [3_000_000]


def test_a_client_that_does_not_read_stops_the_upstream_and_not_the_others(authority):
    with in_front(authority) as server, Peer(server.address) as slow, client_of(server) as other:
        slow.send(message("get_all_tables", text_field(1, "d" * 100) + b"\0"))
        until(lambda: any(c.sending for c in server._connections))
        assert max(len(c.sending or b"") for c in server._connections) <= 1 << 17  # of 20 MB
        assert other.get_table("d", "t").tableName == "t"
        size = 0
        while size < 200_000 * 104:
            size += len(slow.sock.recv(1 << 20))
        until(lambda: not server.in_flight)


def test_this_service_shows_its_certificate(authority):
    there = {"client_certificates": "required"}
    with in_front(authority, there=there, keystore=(str(authority.issue("front")),)) as server, client_of(server) as client:
        assert client.get_table("d", "t").tableName == "t"
        assert server.asking.ask("get_table", "d", "u").tableName == "u"
    with in_front(authority, there=there) as server, client_of(server) as client:
        with pytest.raises(ttypes.MetaException, match="does not answer: "):
            client.get_table("d", "t")
        assert "does not answer: " in server.asking.answers()


def test_who_is_not_the_upstream_is_not_believed(authority, tmp_path):
    other = Authority(tmp_path, "Other CA")
    with in_front(authority, there={"keystore": (str(other.server()),)}) as server, client_of(server) as client:
        with pytest.raises(ttypes.MetaException, match="its certificate is not believed: unable to get local issuer"):
            client.get_table("d", "t")
        assert client.getStatus() == 2
        assert server.catalog.seen == []


def test_the_certificate_names_the_host(authority):
    there = {"keystore": (str(authority.issue("elsewhere", "elsewhere.example")),)}
    with in_front(authority, there=there) as server, client_of(server) as client, \
            pytest.raises(ttypes.MetaException, match="not believed: .*not valid for '127.0.0.1'"):
        client.get_table("d", "t")
    with in_front(authority, there=there, verify_hostname=False) as server, client_of(server) as client:
        assert client.get_table("d", "t").tableName == "t"


def test_an_authority_that_is_renewed_counts_from_the_next_connection_on(authority, tmp_path, monkeypatch):
    monkeypatch.setattr("metastore.tls.contexts._LOOK_EVERY_SECONDS", 0)
    trusted = tmp_path / "trusted.pem"
    trusted.write_bytes(Authority(tmp_path, "Other CA").path.read_bytes())
    with in_front(authority, truststore=(str(trusted),)) as server:
        assert "is not believed" in server.asking.answers()
        renewed = tmp_path / "renewed.pem"
        renewed.write_bytes(authority.path.read_bytes())
        renewed.rename(trusted)
        assert server.asking.answers() == "Invalid method name: 'getName'"
        with client_of(server) as client:
            assert client.get_table("d", "t").tableName == "t"


def test_without_tls_on_our_side_it_does_not_answer(authority):
    with in_front(authority, use_ssl=False) as server, client_of(server) as client, \
            pytest.raises(ttypes.MetaException, match="does not answer: "):
        client.get_table("d", "t")


def test_a_store_that_cannot_be_read_stops_the_start(tmp_path):
    with pytest.raises(InvalidInputError, match="trusted.pem"):
        Upstream(UpstreamSettings(uris=("thrift://localhost:1",), use_ssl=True, truststore=(str(tmp_path / "trusted.pem"),)),
                 ServerSettings())
