"""What a client may do with a table by its own words: what the metastore of Hive 4.2.0 answered (CAT-T10)."""

import json
from pathlib import Path

import pytest

from metastore.catalog.rules.table_access import table_access

VECTORS = json.loads(Path(__file__).with_name("table_access_vectors.json").read_text())


@pytest.mark.parametrize("table", VECTORS, ids=lambda table: " ".join((table["type"], str(table["buckets"]), *table["parameters"].values())))
def test_the_access_is_that_of_hive(table):
    for recorded in table["answers"]:
        for said in recorded["said"]:
            assert [*table_access(table["type"], table["parameters"], said, bucketed=table["buckets"] > 0)] == recorded["answer"], said


def test_a_plain_managed_table_is_for_everybody():
    assert [*table_access("MANAGED_TABLE", {}, ["x"], bucketed=True)] == [8, None, None]


def test_words_of_a_table_are_told_by_their_ends():
    words = {"OBJCAPABILITIES": "MYREAD,MYWRITE"}
    assert [*table_access("EXTERNAL_TABLE", words, ["x"], bucketed=False)] == [1, ["MYREAD", "EXTREAD"], ["MYWRITE"]]
    assert [*table_access("VIRTUAL_VIEW", words, ["x"], bucketed=False)] == [1, ["MYREAD"], None]
