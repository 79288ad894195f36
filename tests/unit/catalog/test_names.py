import re

import pytest

from metastore.catalog.rules.names import directory_name, is_object_name, pattern_regex


@pytest.mark.parametrize(("name", "slash", "good"), [
    ("abc_1", False, True), ("", False, False), ("a/b", False, False), ("a/b", True, True), ("a-b", True, False),
    ("ä", False, False), ("a\n", False, False)])
def test_object_names(name, slash, good):
    assert is_object_name(name, slash=slash) is good


@pytest.mark.parametrize(("table", "directory"), [("sales", "sales"), ("A/b", "a-47-b"), ("x y", "x-32-y")])
def test_directory_names(table, directory):
    assert directory_name(table) == directory


@pytest.mark.parametrize(("pattern", "matched", "refused"), [
    ("*", "a abc", ""), ("a*", "a ab", "b"), ("a.*", "a ab", "ba"), ("a.", "ab", "a abc"), ("a|b", "a b", "c ab"),
    ("A|", "a", "b"), ("|a", "a", "b"), ("a_b", "a_b", "axb"), ("a%", "", "a ab"), ("[a]", "", "a"), ("a?", "", "a ab"),
    ("", "", "a"), ("|", "", "a"), ("a+", "", "a aa"), ("(a)", "", "a"), ("***", "abc", ""), (" a ", "a", "b")])
def test_patterns(pattern, matched, refused):
    regex = pattern_regex(pattern)
    assert [name for name in matched.split() if not re.search(regex, name)] == []
    assert [name for name in refused.split() if re.search(regex, name)] == []


def test_no_pattern_is_every_name():
    assert pattern_regex(None) is None
