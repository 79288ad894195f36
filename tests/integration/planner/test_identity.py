"""Who may ask a planner: the same identity as at the metastore's own port."""

import ssl

import pytest

from metastore.config import PlannerSettings, TlsSettings
from metastore.planner.client_pool import Metastores
from metastore.planner.server import PlannerServer
from tests.integration.planner.conftest import WHO, Caller
from tests.support.certificates import Authority


@pytest.fixture
def authority(tmp_path):
    return Authority(tmp_path)


@pytest.fixture
def secure(server, authority):
    """Yield the address of a planner that wants certificates; the metastore behind it is in the clear."""
    tls = TlsSettings(use_ssl=True, keystore=(str(authority.server()),), truststore=(str(authority.path),), client_certificates="required")
    planner = PlannerServer(Metastores(server.thrift_uri), PlannerSettings(), tls)
    address = planner.start("127.0.0.1", 0)
    yield address
    planner.stop()
    planner.metastores.close()


def trusting(authority, shown=None):
    context = ssl.create_default_context(cafile=str(authority.path))
    if shown is not None:
        context.load_cert_chain(str(shown))
    return context


def test_a_stranger_is_refused_before_anything_is_done(secure, authority, client):
    stranger = Caller(secure, trusting(authority))
    with pytest.raises(OSError):
        stranger.begin()
    stranger.connection.close()
    assert client.get_open_txns_info().open_txns == []


def test_a_certificate_that_names_nobody_is_not_enough(secure, authority, client):
    nobody = Caller(secure, trusting(authority, authority.issue("", file="nobody.pem")))
    assert nobody.refused("begin", **WHO)[:2] == (403, "AccessDeniedError")
    nobody.connection.close()
    assert client.get_open_txns_info().open_txns == []


def test_the_metastore_knows_for_whom_each_call_is(secure, authority, server, monkeypatch):
    """And not the planner's certificate alone, with which everybody could do what the server may."""
    known = []

    class Access:
        def refusal(self, identity, method, arguments=()):
            known.append((method, identity))

    monkeypatch.setattr(server.server._middleware, "_access", Access())
    for name in ("bob", "ann", "bob"):
        caller = Caller(secure, trusting(authority, authority.issue(name)))
        caller.begin()
        caller.connection.close()
    opened = [identity for method, identity in known if method == "open_txns"]
    assert [identity[:3] for identity in opened] == [(name, "planner", "127.0.0.1:0") for name in ("bob", "ann", "bob")]
    assert len([method for method, _ in known if method == "metastore_act_for"]) == 2, "a connection is used again"


def test_the_certificates_user_has_the_transaction(secure, authority, client):
    bob = Caller(secure, trusting(authority, authority.issue("bob")))
    txn = bob.begin()   # which says that it is ann
    [found] = client.get_open_txns_info().open_txns
    assert (found.id, found.user) == (txn, "bob")
    bob.connection.close()
