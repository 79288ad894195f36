"""A client that raises our errors for whatever the server answers."""

from types import SimpleNamespace

import pytest
from thrift.Thrift import TApplicationException

from metastore.client import DomainClient, MetastoreClient
from metastore.client.answers import is_undeclared, is_unknown_method
from metastore.errors import MetaError, NoSuchObjectError
from metastore.thrift_gen.hive_metastore import ttypes
from tests.unit.client.fake_server import FakeServer


def answering(error):
    def get_database(name):
        raise error

    return SimpleNamespace(get_database=get_database)


@pytest.mark.parametrize(("answer", "error", "undeclared", "unknown"), [
    (ttypes.MetaException("The database is busy, try again"), MetaError, False, False),
    (ttypes.NoSuchObjectException("no d"), NoSuchObjectError, False, False),
    (TApplicationException(TApplicationException.INTERNAL_ERROR, "a column is missing"), MetaError, True, False)])
def test_its_methods_raise_our_errors(answer, error, undeclared, unknown):
    with FakeServer(answering(answer)) as server, DomainClient(server.uri) as client:
        with pytest.raises(error) as raised:
            client.get_database("d")
        assert type(raised.value) is error
        assert str(raised.value) == answer.message
        assert (is_undeclared(raised.value), is_unknown_method(raised.value)) == (undeclared, unknown)
        assert len(server.connections) == 1


def test_others_like_it_do_as_well():
    with FakeServer(answering(ttypes.MetaException("busy"))) as server, MetastoreClient(server.uri, user="ann") as plain:
        with DomainClient.like(plain) as client, client.clone(timeout_s=5) as another:
            assert (client.uri, client.user, another.user) == (server.uri, "ann", "ann")
            for one in (client, another):
                with pytest.raises(MetaError, match="busy"):
                    one.get_database("d")
        with plain.clone() as clone, pytest.raises(ttypes.MetaException):
            clone.get_database("d")
