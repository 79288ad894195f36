"""Readers of one batch that ask the same are one question to PostgreSQL, and one answer to encode."""

from collections.abc import Sequence
from typing import cast

from metastore.acid.snapshots import ValidWriteIdList
from metastore.errors import InvalidInputError, MetastoreError
from metastore.thrift_gen.hive_metastore import ttypes
from metastore.thrift_server.dispatch.call import Call
from metastore.thrift_server.handlers.write_ids import WriteIdHandlers
from metastore.write_ids.service import Reading, WriteIdService


class Service:
    """Remembers what it was asked for."""

    def __init__(self) -> None:
        self.readings: list[Reading] = []

    def get_valid_write_ids(self, requests: Sequence[Reading]) -> list[list[ValidWriteIdList] | MetastoreError]:
        self.readings += requests
        return [
            InvalidInputError("no list of transactions")
            if request.valid_txns == "wrong"
            else [ValidWriteIdList(name, 7) for name in request.names]
            for request in requests
        ]


def test_who_asks_the_same_gets_the_same_answer() -> None:
    service = Service()
    handlers = WriteIdHandlers(cast("WriteIdService", service))
    asked = [("a.t", "5:5::"), ("a.u", "5:5::"), ("a.t", "5:5::"), ("a.t", "wrong"), ("a.t", "6:6::"), ("a.t", "wrong")]
    calls = [
        Call("get_valid_write_ids", (ttypes.GetValidWriteIdsRequest([table], txns),), None)  # type: ignore[arg-type]
        for table, txns in asked
    ]
    answers = handlers.get_valid_write_ids(calls)
    assert [(*reading.names, reading.valid_txns) for reading in service.readings] == list(dict.fromkeys(asked))
    assert answers[0] is answers[2]
    assert answers[3] is answers[5]
    assert isinstance(answers[3], InvalidInputError)
    tables = [
        answer.tblValidWriteIds[0].fullTableName
        for answer in answers
        if isinstance(answer, ttypes.GetValidWriteIdsResponse)
    ]
    assert tables == ["a.t", "a.u", "a.t", "a.t"]
