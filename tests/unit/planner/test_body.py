"""Bodies of any size and shape: read within bounds, or refused with a sentence."""

import time
import tracemalloc

import pytest

from metastore.errors import InvalidInputError
from metastore.planner.body import Body

MANY = [b'{"a":[' + b"[]," * 5_000_000 + b"[]]}", b'{"a":[' + b"{}," * 5_000_000 + b"{}]}", b'{"a":[' + b"1," * 8_000_000 + b"1]}",
        b'{"a":"' + b"\\u0041" * 2_500_000 + b'"}']


@pytest.mark.parametrize("content", MANY, ids=["lists", "objects", "numbers", "escapes"])
def test_a_body_of_many_values_takes_no_memory(content):
    tracemalloc.start()
    try:
        with pytest.raises(InvalidInputError, match="The body has more than 1000000 values"):
            Body.of(content)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


def test_the_largest_body_that_is_read_holds_nobody_up_for_long():
    content = b'{"a":[' + b"[]," * 490_000 + b"[]]}"
    began = time.process_time()
    assert len(Body.of(content).values("a")) == 490_001
    assert time.process_time() - began < 1


@pytest.mark.parametrize("wrong", [b"[" * 5000 + b"]" * 5000, b'"' + b"x" * 1_000_000 + b'"', b"[" + b"1," * 90_000 + b"1]"])
def test_what_is_wrong_is_shown_in_few_words(wrong):
    try:
        body = Body.of(b'{"table": ' + wrong + b"}")
    except InvalidInputError as error:
        assert "is not JSON" in str(error)
        return
    with pytest.raises(InvalidInputError, match="table must be a text|table must be a table's name") as found:
        body.table()
    assert len(str(found.value)) < 300
