"""Delegation tokens on a server with PostgreSQL: replays, tokens that are gone, and those that Hive servers keep here."""

import base64
import secrets
import socket
import struct
from datetime import timedelta

import pytest

from metastore.client import MetastoreClient
from metastore.config import ServerSettings
from metastore.config.identity import IdentitySettings
from metastore.thrift_server.auth import digest
from metastore.thrift_server.auth.access import Guarded, Identified
from metastore.thrift_server.auth.digest import directives, token_mechanism
from metastore.thrift_server.auth.principals import LocalNames
from metastore.thrift_server.dispatch.registry import handlers_of
from metastore.thrift_server.handlers.tokens import ForeignTokenHandlers, TokenHandlers
from metastore.thrift_server.loop import sasl_socket
from metastore.thrift_server.server import Server
from metastore.tokens.rules import decoded_token
from metastore.tokens.service import TokenService


class Asks:
    """Tells who asks."""

    def get_all_databases(self, _call):
        return [str(_call.connection.identity[:2])]


@pytest.fixture
def tokens(database):
    return TokenService(database, IdentitySettings(), {}, lambda _: ())


@pytest.fixture
def server(tokens):
    names = LocalNames("DEFAULT", "R")
    made = Server(ServerSettings(port=0), handlers_of(Asks(), TokenHandlers(tokens, names), ForeignTokenHandlers(tokens)),
                  mechanisms={"DIGEST-MD5": token_mechanism(tokens.password_of)}, access=Guarded(Identified(), ()))
    made.address = made.start()
    yield made
    made.drain(1)


class Login:
    """A client's side of DIGEST-MD5, by RFC 2831; a test may change what it sends."""

    def __init__(self, address):
        self.sock = socket.create_connection(address, timeout=20)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.sock.close()

    def send(self, status, payload):
        self.sock.sendall(bytes((status,)) + struct.pack(">I", len(payload)) + payload)

    def receive(self):
        status, size = struct.unpack(">BI", self.sock.recv(5, socket.MSG_WAITALL))
        return status, self.sock.recv(size, socket.MSG_WAITALL) if size else b""

    def challenge(self):
        self.send(1, b"DIGEST-MD5")
        self.send(2, b"")
        status, text = self.receive()
        assert status == 2
        return directives(text)

    def response(self, challenge, token, **changed):
        identifier, password = decoded_token(token)
        said = {"username": base64.b64encode(identifier).decode(), "realm": "default", "nonce": challenge["nonce"], "nc": "00000001",
                "cnonce": secrets.token_hex(8), "digest-uri": "null/default", "qop": "auth"} | changed
        key = digest.session_key(said, base64.b64encode(password).decode())
        said.setdefault("response", digest.digest(key, said, "AUTHENTICATE:"))
        quoted = {"username", "realm", "nonce", "cnonce", "digest-uri", "authzid"}
        return ",".join(f'{name}="{value}"' if name in quoted else f"{name}={value}" for name, value in said.items()).encode()


def token_of(tokens, owner="ann"):
    return tokens.get_delegation_token(owner, "yarn", owner, "10.0.0.1")


def test_a_login_by_token(server, tokens):
    with Login(server.address) as login:
        login.send(2, login.response(login.challenge(), token_of(tokens)))
        status, proof = login.receive()
        assert status == 5
        assert proof.startswith(b"rspauth=")


@pytest.mark.parametrize("changed", [{"nonce": "AAAA"}, {"nc": "00000002"}, {"realm": "other"}, {"qop": "auth-int"}, {"authzid": "root"}, {"username": "cm9vdA=="},
                                     {"username": "!"}, {"response": "0" * 32}, {"cnonce": ""}])
def test_a_response_that_is_not_of_this_negotiation(server, tokens, changed):
    with Login(server.address) as login:
        response = login.response(login.challenge(), token_of(tokens), **changed)
        login.send(2, response)
        assert login.receive()[0] == 4
        assert login.sock.recv(10) == b""


def test_a_replayed_response(server, tokens):
    token = token_of(tokens)
    with Login(server.address) as first:
        response = first.response(first.challenge(), token)
        first.send(2, response)
        assert first.receive()[0] == 5
    with Login(server.address) as again:
        again.challenge()
        again.send(2, response)
        assert again.receive()[0] == 4


def test_a_token_that_is_gone(server, tokens):
    token, other = token_of(tokens), token_of(tokens)
    tokens.cancel_delegation_token(token, {"ann"})
    for each, status in ((token, 4), (other, 5)):
        with Login(server.address) as login:
            login.send(2, login.response(login.challenge(), each))
            got = login.receive()
            assert got[0] == status
            assert status == 5 or b"IO error acquiring password" in got[1]


def test_tokens_end_and_keys_roll(database, tokens):
    short = TokenService(database, IdentitySettings(token_renewal=timedelta(0), key_interval=timedelta(0)), {}, lambda _: ())
    gone = decoded_token(token_of(short))[0]
    assert tokens.password_of(gone) is None
    kept = decoded_token(token_of(short))[0]
    assert database.once("SELECT count(*) FROM token_keys") == [(2,)]
    assert tokens.purge() == 2
    assert database.once("SELECT (SELECT count(*) FROM token_keys), (SELECT count(*) FROM delegation_tokens)") == [(1, 0)]
    assert tokens.password_of(kept) is None


def test_what_hive_servers_keep_here(server):
    with MetastoreClient(f"thrift://{server.address[0]}:{server.address[1]}") as client:
        assert [client.add_token("a", "t"), client.add_token("a", "u")] == [True, False]
        assert (client.get_token("a"), client.get_token("b"), client.get_all_token_identifiers()) == ("t", "", ["a"])
        assert [client.remove_token("a"), client.remove_token("a")] == [True, False]
        first, second = client.add_master_key("k"), client.add_master_key("l")
        assert second > first
        client.update_master_key(first, "m")
        with pytest.raises(client.types.NoSuchObjectException):
            client.update_master_key(99, "m")
        assert client.get_master_keys() == ["m", "l"]
        assert [client.remove_master_key(first), client.remove_master_key(first)] == [True, False]


def test_who_proves_nothing_calls_nothing(server, monkeypatch):
    """Not even from this machine, if the kernel does not name the server's own user."""
    monkeypatch.setattr(sasl_socket, "of_own_user", lambda _: sasl_socket.NOBODY)
    with MetastoreClient(f"thrift://{server.address[0]}:{server.address[1]}") as client:
        with pytest.raises(client.types.MetaException, match="answers only clients that prove who they are"):
            client.get_all_databases()
        with pytest.raises(client.types.MetaException, match="answers only clients"):
            client.get_delegation_token("ann", "yarn")
