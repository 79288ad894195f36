"""Messages that are encoded once, and answers that are looked at without decoding them."""

import pytest
from thrift.protocol import fastbinary

from benchmarks.load import request
from benchmarks.messages import SNAPSHOT, TXN, WRITE_ID, pieces, snapshot_of, text, whole_open_txns
from metastore.thrift_gen.hive_metastore import ThriftHiveMetastore, ttypes


def test_pieces_around_ids_make_the_message() -> None:
    def message(txn_id: int, write_id: int) -> tuple[object, ...]:
        return (ttypes.AddDynamicPartitions(txn_id, write_id, "db", "t", ["p=1"], 2),)

    first, second, third = pieces("add_dynamic_partitions", *message(TXN, WRITE_ID))
    built = first + (7).to_bytes(8, "big") + second + (8).to_bytes(8, "big") + third
    assert built == request("add_dynamic_partitions", *message(7, 8))


def test_a_text_of_any_length_takes_its_place() -> None:
    around = pieces("get_valid_write_ids", ttypes.GetValidWriteIdsRequest(["db.t"], SNAPSHOT))
    assert text("12:3:3,4:").join(around) == request(
        "get_valid_write_ids", ttypes.GetValidWriteIdsRequest(["db.t"], "12:3:3,4:"))


@pytest.mark.parametrize("count", [0, 5, 300])
def test_an_answer_is_whole_only_at_its_end(count: int) -> None:
    answer = ttypes.GetOpenTxnsResponse(count + 10, list(range(7, 7 + count)), 7 if count else None, b"\0" * (count // 8))
    result = ThriftHiveMetastore.get_open_txns_result
    reply = request("get_open_txns")[:-1] + fastbinary.encode_binary(result(answer), [result, result.thrift_spec])
    assert whole_open_txns(reply)
    assert not any(whole_open_txns(reply[:end]) for end in range(len(reply)))
    others = ",".join(str(txn_id) for txn_id in range(8, 7 + count))
    assert snapshot_of(reply, own=7) == f"{count + 10}:{8 if others else 2**63 - 1}:{others}:"
