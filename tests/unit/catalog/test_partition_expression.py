"""Serialized expressions, as Hive 2.3.10 (Kryo 4) and Hive 4.0.1 (Kryo 5) wrote them with their own classes.

kryo_vectors.json was written by SerializationUtilities of both versions; each must mean the same as a filter string.
"""

import json
import struct
from datetime import datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metastore.catalog.rules import kryo
from metastore.catalog.rules.partition_expression import parse_expression
from metastore.catalog.rules.partition_filter import parse_filter
from metastore.catalog.rules.partition_predicate import Unknown
from metastore.catalog.rules.partition_syntax import PartitionKey
from metastore.errors import InvalidRequestError
from metastore.partition_names import DEFAULT_PARTITION

VECTORS = {(row["hive"], row["condition"]): bytes.fromhex(row["hex"])
           for row in json.loads((Path(__file__).parent / "kryo_vectors.json").read_text())}
KEYS = [PartitionKey("dt", "string"), PartitionKey("hr", "int"), PartitionKey("n", "bigint"), PartitionKey("d", "date"),
        PartitionKey("ts", "timestamp"), PartitionKey("v", "varchar(10)")]
EQUIVALENT = {
    "dt = '1'": "dt = '1'", "dt = 'März' AND hr = 14": "dt = 'März' and hr = 14",
    "dt = 'long' OR n >= -5": f"dt = '{'long' * 30}' or n >= -5", "14 < hr": "hr > 14", "hr != 300": "hr != 300",
    "dt in ('a','bc')": "dt in ('a', 'bc')", "not dt in ('a')": "dt != 'a'", "hr between 3 and 5": "hr between 3 and 5",
    "hr not between 3 and 5": "hr not between 3 and 5", "dt is null": f"dt = '{DEFAULT_PARTITION}'",
    "dt is not null and hr = 1": f"dt != '{DEFAULT_PARTITION}' and hr = 1", "dt like 'a%'": "dt like 'a%'",
    "a and b and c": "dt = 'x' and hr > 1 and hr <= 9", "struct(dt,hr) in": "dt = 'a' and hr = 1",
    "d >= 2020-02-29": "d >= 2020-02-29", "v = varchar": "v = 'abc'",
}
UNKNOWN = {"f > 1.5", "b = true", "dec = 1.50", "UDFToString(hr) = '14'"}
# CLIENT-6: captured on the wire from Hive 2.3.10's SELECT.
CAPTURED = bytes.fromhex(
    "0101006a6176612e7574696c2e41727261794c6973f4010201016f72672e6170616368652e6861646f6f702e686976652e716c2e706c616e2e4578"
    "70724e6f6465436f6c756d6e446573e3010164f401000174b101026f72672e6170616368652e6861646f6f702e686976652e7365726465322e7479"
    "7065696e666f2e5072696d697469766554797065496e66ef0101737472696ee701036f72672e6170616368652e6861646f6f702e686976652e716c"
    "2e706c616e2e457870724e6f6465436f6e7374616e74446573e3010102070301823101046f72672e6170616368652e6861646f6f702e686976652e"
    "716c2e7564662e67656e657269632e47656e657269635544464f5045717561ec01000001823d0145515541cc01056f72672e6170616368652e6861"
    "646f6f702e696f2e426f6f6c65616e5772697461626ce501000001020101626f6f6c6561ee")


@pytest.mark.parametrize("version", ["2.3.10", "4.0.1"])
@pytest.mark.parametrize(("condition", "text"), EQUIVALENT.items())
def test_an_expression_means_what_the_filter_means(version: str, condition: str, text: str) -> None:
    assert parse_expression(VECTORS[version, condition], KEYS, DEFAULT_PARTITION) == parse_filter(text, KEYS)


def test_the_captured_expression() -> None:
    assert parse_expression(CAPTURED, KEYS, DEFAULT_PARTITION) == parse_filter("dt = '1'", KEYS)


def test_a_timestamp_of_an_unknown_zone_is_not_guessed() -> None:
    condition = "ts = 2020-02-29 01:02:03.5"
    assert isinstance(parse_expression(VECTORS["2.3.10", condition], KEYS, DEFAULT_PARTITION), Unknown)
    assert parse_expression(VECTORS["4.0.1", condition], KEYS, DEFAULT_PARTITION) == parse_filter(
        "ts = TIMESTAMP '2020-02-29 01:02:03.5'", KEYS)


@pytest.mark.parametrize(("midnight", "day"), [
    ("2020-02-29T00:00", "2020-02-29"), ("2020-02-28T12:30", "2020-02-29"), ("2020-02-28T23:00", "2020-02-29"), ("2020-02-29T09:59", "2020-02-29"),
    ("2020-02-29T10:00", None), ("2020-02-29T11:00", None), ("2020-02-29T12:00", None), ("1500-01-10T00:00", None), ("1850-06-01T00:00", None)])
def test_the_day_of_an_old_hive_is_known_where_zones_agree(midnight, day):
    """Hive 2.3 sends the instant of its own midnight: Honolulu's and Auckland's are the same, and before 1582 is another calendar."""
    data = VECTORS["2.3.10", "d >= 2020-02-29"]
    milliseconds = [int(datetime.fromisoformat(f"{text}+00:00").timestamp() * 1000) for text in ("2020-02-29T00:00", midnight)]
    known, other = (struct.pack(">q", one) for one in milliseconds)
    assert data.count(known) == 1
    found = parse_expression(data.replace(known, other), KEYS, DEFAULT_PARTITION)
    assert found == parse_filter(f"d >= {day}", KEYS) if day else isinstance(found, Unknown)


@pytest.mark.parametrize(("version", "condition"), [key for key in VECTORS if key[1] in UNKNOWN])
def test_what_we_do_not_evaluate_is_unknown(version: str, condition: str) -> None:
    assert isinstance(parse_expression(VECTORS[version, condition], KEYS, DEFAULT_PARTITION), Unknown)


def test_a_column_that_is_no_key_is_unknown() -> None:
    assert isinstance(parse_expression(CAPTURED, KEYS[1:], DEFAULT_PARTITION), Unknown)


def test_every_vector_is_read_to_its_last_byte() -> None:
    assert {row[1] for row in VECTORS} == EQUIVALENT.keys() | UNKNOWN | {"ts = 2020-02-29 01:02:03.5"}
    for data in VECTORS.values():
        assert kryo.read(data).kind == "ExprNodeGenericFuncDesc"


def test_text_is_a_filter_and_anything_else_is_refused() -> None:
    assert parse_expression(b"dt = '1'", KEYS, DEFAULT_PARTITION) == parse_filter("dt = '1'", KEYS)
    for garbage in (b"\xac\xed\x00\x05", b"\x01\x02\x03", b"dt = "):
        with pytest.raises(InvalidRequestError):
            parse_expression(garbage, KEYS, DEFAULT_PARTITION)


def test_a_class_by_a_number_that_is_not_read_is_refused() -> None:
    data = CAPTURED.replace(b"\3\1\x821", b"\x5a\1\x821")  # the text's class is number 1, and two
    with pytest.raises(InvalidRequestError, match="class number 88, which is not read here"):
        kryo.read(data)


@given(st.sampled_from(sorted(VECTORS.values())), st.integers(0, 600), st.binary(max_size=4))
def test_damaged_bytes_never_break_the_reader(data: bytes, at: int, noise: bytes) -> None:
    at = min(at, len(data))
    for damaged in (data[:at], data[:at] + noise + data[at + len(noise):], data + noise):
        try:
            parse_expression(damaged, KEYS, DEFAULT_PARTITION)
        except InvalidRequestError:
            continue
