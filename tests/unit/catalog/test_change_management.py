"""Which files replicas may need, and where they look for them."""

from datetime import UTC, datetime, timedelta

import pytest

from metastore.catalog.model import TableType
from metastore.catalog.rules.change_management import expired, is_needed, is_source, name_in_cmroot, replicated

NOW = datetime(2026, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)


@pytest.mark.parametrize(("parameters", "source"), [
    ({}, False), ({"repl.source.for": ""}, False), ({"repl.source.for": "policy"}, True), ({"repl.source.for": "a, b"}, True)])
def test_source(parameters, source):
    assert is_source(parameters) is source


@pytest.mark.parametrize(("parameters", "kind", "needed"), [
    ({"repl.source.for": "p"}, TableType.MANAGED, True), ({"repl.source.for": "p"}, TableType.EXTERNAL, False),
    ({}, TableType.MANAGED, False)])
def test_needed(parameters, kind, needed):
    assert is_needed(parameters, kind) is needed


@pytest.mark.parametrize(("name", "checksum", "kept"), [  # all as Hive 4.0.1's getCMPath says
    ("bucket_00000", "0123ab", "bucket_00000_0123ab"), ("a" * 200, "b" * 54, "a" * 200 + "_" + "b" * 54),
    ("a" * 200, "b" * 55, "a" * 200 + "_" + "b" * 53), ("a" * 300, "b", "a" * 254)])
def test_name(name, checksum, kept):
    assert name_in_cmroot(name, checksum) == kept


@pytest.mark.parametrize(("root", "files", "kept"), [
    ("/.hidden/t", ["/.hidden/t/a", "/.hidden/t/.b", "/.hidden/t/.c/d", "/.hidden/t/_e", "/.hidden/t/f/g"], ["a", "_e", "f/g"]),
    ("/t/.acid_stage_7/", ["/t/.acid_stage_7/bucket_00000"], []), ("/t/000000_0", ["/t/000000_0"], [""])])
def test_what_is_hidden_is_no_part_of_a_table(root, files, kept):
    assert [uri.removeprefix(root).strip("/") for uri in replicated(files, root)] == kept


def test_expired():
    files = [("new", NOW), ("just", NOW - 10 * DAY), ("old", NOW - 10 * DAY - timedelta(microseconds=1))]
    assert expired(files, NOW, 10 * DAY) == ["old"]
