"""Which batches of a streaming query are new, which are there already, and which tell that the query was set back."""

from datetime import UTC, datetime

import pytest

from metastore.errors import InvalidOperationError, InvalidRequestError
from metastore.txns.streams.rules import LONGEST_TEXT, StreamBatch, StreamPosition, is_repetition

BATCH = StreamBatch("q", 7, "abc")
POSITION = StreamPosition(BATCH, 42, datetime(2026, 11, 21, 9, 0, tzinfo=UTC))


@pytest.mark.parametrize(("position", "batch", "repeated"), [
    (None, BATCH, False),
    (None, BATCH._replace(batch_id=0), False),
    (POSITION, BATCH, True),
    (POSITION, BATCH._replace(batch_id=8), False),
    (POSITION, BATCH._replace(batch_id=8, plan="other"), False),
    (POSITION, BATCH._replace(batch_id=80), False),
])
def test_new_or_repeated(position, batch, repeated):
    assert is_repetition(position, batch) is repeated


@pytest.mark.parametrize(("batch", "said"), [
    (BATCH._replace(batch_id=6), "Batch 6 of streaming query q is an earlier one"),
    (BATCH._replace(batch_id=0), "Batch 0 of streaming query q is an earlier one"),
    (BATCH._replace(plan="other"), "Batch 7 of streaming query q has other rows than before"),
])
def test_a_query_that_was_set_back_is_refused(batch, said):
    with pytest.raises(InvalidOperationError) as refused:
        is_repetition(POSITION, batch)
    assert str(refused.value).startswith(
        f"{said}: the table has come to batch 7 (transaction 42, 2026-11-21 09:00:00 UTC).")
    assert "new checkpoint" in str(refused.value)


def test_what_cannot_be_recorded():
    longest = "x" * LONGEST_TEXT
    assert StreamBatch(longest, 0, longest).required() == (longest, 0, longest)
    for one in (StreamBatch("", 0, ""), StreamBatch("q", -1, ""), StreamBatch(longest + "x", 0, ""),
                StreamBatch("q", 0, longest + "x")):
        with pytest.raises(InvalidRequestError):
            one.required()
