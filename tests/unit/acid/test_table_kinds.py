"""What a table is, by its properties; and that nothing else decides it."""

import re
from pathlib import Path

import pytest

import metastore
from metastore.acid.table_kinds import TableKind, is_full_acid, is_insert_only, is_transactional, table_kind

PACKAGE = Path(metastore.__file__).parent
DECIDES = re.compile(r"""get\(\s*["']transactional["']|->> 'transactional'|lower\(\).*==? ?["']insert_only""")


@pytest.mark.parametrize(("parameters", "kind"), [
    ({}, TableKind.PLAIN), ({"transactional": "false"}, TableKind.PLAIN), ({"transactional": ""}, TableKind.PLAIN),
    ({"transactional_properties": "insert_only"}, TableKind.PLAIN), ({"TRANSACTIONAL": "true"}, TableKind.PLAIN),
    ({"transactional": "true"}, TableKind.FULL_ACID), ({"transactional": "TRUE"}, TableKind.FULL_ACID),
    ({"transactional": "true", "transactional_properties": "default"}, TableKind.FULL_ACID),
    ({"transactional": "true", "transactional_properties": "Insert_Only"}, TableKind.INSERT_ONLY)])
def test_table_kind(parameters, kind):
    assert table_kind(parameters) is kind
    assert [is_full_acid(parameters), is_insert_only(parameters)] == [kind is TableKind.FULL_ACID, kind is TableKind.INSERT_ONLY]
    assert is_transactional(parameters) is (kind is not TableKind.PLAIN)


def test_a_stored_property_is_read_in_one_place_of_each_language():
    """Leave out texts of statements for a table that is to be (``spark``'s SQL, ``validated_new``): they are no stored property."""
    found = sorted({str(path.relative_to(PACKAGE)) for path in PACKAGE.rglob("*")
                    if path.suffix in {".py", ".sql", ".java"} and DECIDES.search(path.read_text())})

    assert found == ["catalog/store/is_transactional.sql"]
