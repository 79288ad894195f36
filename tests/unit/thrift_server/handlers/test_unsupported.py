"""What Hive's own server has without an effect, and options of fb303: as the metastore of Hive 4.2.0 answers on PostgreSQL."""

import pytest
from thrift.Thrift import TApplicationException

from metastore.client import MetastoreClient
from metastore.telemetry.calls import CallStats
from metastore.thrift_gen.hive_metastore import ttypes as T
from metastore.thrift_server.handlers.fb303 import Fb303Handlers
from metastore.thrift_server.handlers.unsupported import UnsupportedHandlers
from tests.support.thrift_server import serving


@pytest.fixture(scope="module")
def client():
    with serving(UnsupportedHandlers(), Fb303Handlers(CallStats(), 0)) as server, MetastoreClient("thrift://{}:{}".format(*server.address)) as client:
        yield client


def test_footers_of_files_are_not_supported(client):
    assert client.put_file_metadata(T.PutFileMetadataRequest([1], [b"x"])) == T.PutFileMetadataResult()
    assert client.get_file_metadata(T.GetFileMetadataRequest([1])) == T.GetFileMetadataResult({}, False)
    assert client.get_file_metadata_by_expr(T.GetFileMetadataByExprRequest([1], b"x")) == T.GetFileMetadataByExprResult({}, False)
    assert client.clear_file_metadata(T.ClearFileMetadataRequest([1])) == T.ClearFileMetadataResult()
    assert client.cache_file_metadata(T.CacheFileMetadataRequest("nosuch", "t")) == T.CacheFileMetadataResult(False)


def test_no_namespace_of_properties_is_declared(client):
    with pytest.raises(T.NoSuchObjectException):
        client.get_properties(T.PropertyGetRequest("hms", "db.t"))
    with pytest.raises(T.NoSuchObjectException):
        client.set_properties(T.PropertySetRequest("hms", {"db.t.p": "v"}))


def test_types_are_not_listed(client):  # CAT-290
    for name in ("x", None):
        with pytest.raises(T.MetaException):
            client.get_type_all(name)


def test_options_stay_as_long_as_the_process(client):
    client.setOption("k", "v")
    assert (client.getOption("k"), client.getOptions(), client.getCpuProfile(1)) == ("v", {"k": "v"}, "")
    for unknown in ("zz", None):
        with pytest.raises(TApplicationException) as refused:
            client.getOption(unknown)
        assert refused.value.type == TApplicationException.MISSING_RESULT
    for wrong in ((None, "v"), ("k", None), ("k", "v" * 1000)):
        with pytest.raises(TApplicationException):
            client.setOption(*wrong)
    for number in range(99):
        client.setOption(f"k{number}", "v")
    client.setOption("k", "w")
    with pytest.raises(TApplicationException, match="at most 100"):
        client.setOption("more", "v")
    assert (len(client.getOptions()), client.getOption("k")) == (100, "w")
