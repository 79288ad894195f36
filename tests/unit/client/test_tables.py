"""Tables are made by the newest call that the metastore has, with what the Spark side can do with them."""

import pytest
from thrift.Thrift import TApplicationException

from metastore.client.tables import create_table
from metastore.errors import AlreadyExistsError, MetaError
from metastore.thrift_gen.hive_metastore import ttypes


class Metastore:
    """Notes what is called; ``lacks``: has no such method."""

    types = ttypes

    def __init__(self, *lacks, refusal=None):
        self.calls, self._lacks, self._refusal = [], lacks, refusal

    def __getattr__(self, name):
        def method(*arguments):
            self.calls.append((name, arguments))
            if name in self._lacks:
                raise MetaError(f"Invalid method name: '{name}'") from TApplicationException(TApplicationException.UNKNOWN_METHOD)
            if self._refusal is not None:
                raise self._refusal
        return method


CONSTRAINTS = [[ttypes.SQLPrimaryKey(pk_name="p")], [], [], [], [], [ttypes.SQLCheckConstraint(dc_name="c")]]


def test_it_says_what_it_can_do():
    metastore, table = Metastore(), ttypes.Table(tableName="t")
    create_table(metastore, table, *CONSTRAINTS)
    [(name, [request])] = metastore.calls
    assert (name, request.table) == ("create_table_req", table)
    assert "HIVEFULLACIDWRITE" in request.processorCapabilities
    assert (request.primaryKeys, request.checkConstraints) == (CONSTRAINTS[0], CONSTRAINTS[5])


def test_older_metastores_have_older_calls():
    table = ttypes.Table(tableName="t")
    for constraints, name in (((), "create_table"), (CONSTRAINTS, "create_table_with_constraints")):
        metastore = Metastore("create_table_req")
        create_table(metastore, table, *constraints)
        assert metastore.calls[1:] == [(name, (table, *constraints))]


@pytest.mark.parametrize("refusal", [AlreadyExistsError("there"), MetaError("no")])
def test_a_refusal_is_one(refusal):
    metastore = Metastore(refusal=refusal)
    with pytest.raises(type(refusal)):
        create_table(metastore, ttypes.Table())
    assert len(metastore.calls) == 1
