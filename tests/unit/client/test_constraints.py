"""Constraints as the catalog has them, also where it is an older Hive's."""

import pytest
from thrift.Thrift import TApplicationException

from metastore.client import MetastoreClient
from metastore.client.constraints import EnabledConstraints, enabled_constraints
from metastore.client.domain_client import DomainClient
from metastore.errors import MetaError
from metastore.ids import TableName
from metastore.thrift_gen.hive_metastore import ttypes
from tests.support.thrift_server import serving

NAME = TableName("hive", "d", "t")


class Nothing:
    """A server that has no such method."""


class Refusing:
    def get_all_table_constraints(self, _call, _request):
        raise MetaError("no")


@pytest.mark.parametrize("kind", [MetastoreClient, DomainClient])
def test_a_catalog_that_cannot_be_asked_has_none(kind):
    with serving(Nothing()) as server, kind("thrift://{}:{}".format(*server.address)) as client:
        assert enabled_constraints(client, NAME) == EnabledConstraints((), (), {})


@pytest.mark.parametrize(("kind", "error"), [(MetastoreClient, ttypes.MetaException), (DomainClient, MetaError)])
def test_another_error_is_not_taken_for_that(kind, error):
    with serving(Refusing()) as server, kind("thrift://{}:{}".format(*server.address)) as client:
        with pytest.raises(error) as raised:
            enabled_constraints(client, NAME)
        assert not isinstance(raised.value, TApplicationException)
