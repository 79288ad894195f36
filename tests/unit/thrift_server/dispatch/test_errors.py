import inspect

import pytest
from thrift.Thrift import TApplicationException

from metastore import errors
from metastore.thrift_gen.hive_metastore import ttypes
from metastore.thrift_server.dispatch.errors import EXCEPTIONS, wire_exception
from metastore.thrift_server.wire.codec import CODECS

OURS = [cls for cls in vars(errors).values() if inspect.isclass(cls) and issubclass(cls, errors.MetastoreError)]


@pytest.mark.parametrize("error", OURS)
def test_every_error_has_an_entry(error):
    assert issubclass(EXCEPTIONS[error], Exception)


@pytest.mark.parametrize("error", OURS)
def test_every_error_can_be_sent_by_every_method(error):
    for method, codec in CODECS.items():
        found = wire_exception(error("the table is gone"), method, codec.exceptions)
        assert type(found) in codec.exceptions or type(found) is TApplicationException
        assert found.message == "the table is gone"


@pytest.mark.parametrize(
    ("error", "method", "expected"),
    [
        (errors.NoSuchObjectError("x"), "get_table", ttypes.NoSuchObjectException),
        (errors.NoSuchObjectError("x"), "get_all_tables", ttypes.MetaException),  # not declared there
        (errors.UnavailableError("x"), "get_table", ttypes.MetaException),
        (errors.UnavailableError("x"), "unlock", TApplicationException),  # declares no MetaException
        (errors.TxnAbortedError("x"), "heartbeat", ttypes.TxnAbortedException),
        (errors.NoSuchLockError("x"), "heartbeat", ttypes.NoSuchLockException),
    ],
)
def test_the_declared_exception_is_chosen(error, method, expected):
    assert type(wire_exception(error, method, CODECS[method].exceptions)) is expected


def test_a_subclass_goes_out_as_its_parent():
    class Special(errors.NoSuchTxnError):
        pass

    found = wire_exception(Special("gone"), "commit_txn", CODECS["commit_txn"].exceptions)
    assert type(found) is ttypes.NoSuchTxnException


def test_a_declared_thrift_exception_passes_through_and_an_undeclared_one_is_internal():
    error = ttypes.InvalidOperationException("no")
    assert wire_exception(error, "alter_table", CODECS["alter_table"].exceptions) is error
    undeclared = wire_exception(error, "get_table", CODECS["get_table"].exceptions)
    assert undeclared.type == TApplicationException.INTERNAL_ERROR


def test_texts_are_never_empty_and_unforeseen_errors_name_their_cause():
    assert wire_exception(errors.MetaError(), "get_table", CODECS["get_table"].exceptions).message == "MetaError"
    found = wire_exception(KeyError("location"), "get_table", CODECS["get_table"].exceptions)
    assert found.type == TApplicationException.INTERNAL_ERROR
    assert found.message == "Internal error processing get_table: KeyError: 'location'"
