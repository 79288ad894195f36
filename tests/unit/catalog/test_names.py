import re

import pytest

from metastore.catalog.rules.names import (
    directory_name,
    is_database_name,
    is_object_name,
    is_prefix,
    is_table_name,
    is_transactional_name,
    only_name,
    pattern_range,
    pattern_regex,
)
from metastore.ids import TableName


@pytest.mark.parametrize(("name", "good"), [
    ("abc_1", "cdt"), ("", ""), ("a/b", "dt"), ("a-b", "dt"), ("a.b", "dt"), ("a b", "dt"), ("a$b", "dt"), ("a@b", "dt"), ("@a", "t"),
    ("a:b", "t"), ("../b", "t"), ("a/../b", "t"), ("..", "dt"), ("ä", ""), ("a\n", ""), ("a\\b", ""), ("a`b", ""), ("a'b", "")])
def test_object_names(name, good):
    """Asked: 4.0.1, for signs that its own list has; the last four are refused here alone, or by it too."""
    kinds = {"c": is_object_name, "d": is_database_name, "t": is_table_name}
    assert [kind for kind, accepts in kinds.items() if accepts(name)] == list(good)


@pytest.mark.parametrize(("db", "table", "good"), [("my-db", "a b$@/", True), ("my.db", "t", False), ("d", "a:b", False), ("d", "a.b", False)])
def test_names_of_transactional_tables(db, table, good):
    assert is_transactional_name(TableName("hive", db, table)) is good


@pytest.mark.parametrize(("table", "directory"), [("sales", "sales"), ("A/b", "a-47-b"), ("x y", "x-32-y")])
def test_directory_names(table, directory):
    assert directory_name(table) == directory


@pytest.mark.parametrize(("pattern", "matched", "refused"), [
    ("*", "a abc", ""), ("a*", "a ab", "b"), ("a.*", "a ab", "ba"), ("a.", "ab", "a abc"), ("a|b", "a b", "c ab"),
    ("A|", "a", "b"), ("|a", "a", "b"), ("a_b", "a_b", "axb"), ("a%", "", "a ab"), ("[a]", "", "a"), ("a?", "", "a ab"),
    ("", "", "a"), ("|", "", "a"), ("a+", "", "a aa"), ("(a)", "", "a"), ("***", "abc", ""), (" a ", "a", "b")])
def test_patterns(pattern, matched, refused):
    regex, (first, end) = pattern_regex(pattern), pattern_range(pattern)
    assert [name for name in matched.split() if not (first <= name and (end is None or name < end))] == []
    assert [name for name in matched.split() if not re.search(regex, name)] == []
    assert [name for name in refused.split() if re.search(regex, name)] == []


@pytest.mark.parametrize(("pattern", "all_of_the_range"), [
    (None, True), ("*", True), ("***", True), (".*", True), ("a*", True), (" A_1.* ", True), ("a/*|", True), ("", False), ("|", False), ("a", False),
    ("*a", False), ("a*b", False), ("a.", False), ("a.*.", False), (".", False), ("a*|b*", False), ("a*|a", False), ("\u00e4*", False), ("a\u00e4*", False)])
def test_what_begins_alike_is_all_of_the_range(pattern, all_of_the_range):
    assert is_prefix(pattern) is all_of_the_range
    if all_of_the_range:
        first, end = pattern_range(pattern)
        names = ["", "a", "a/", "a_1", "a_1\u00e4", "a_2", "ab", "b", "\u00e4", "0", "_"]
        assert {name for name in names if first <= name and (end is None or name < end)} == {
            name for name in names if re.search(pattern_regex(pattern) or "", name)}


@pytest.mark.parametrize(("pattern", "name"), [
    ("a", "a"), (" A_1/ ", "a_1/"), ("a|", "a"), ("\u00e4[", "\u00e4["), ("", None), ("|", ""), (None, None), ("a*", None), ("a.", None), ("a|b", None)])
def test_what_is_a_name(pattern, name):
    assert only_name(pattern) == name
    if name is not None:
        assert re.search(pattern_regex(pattern), name)


def test_no_pattern_is_every_name():
    assert pattern_regex(None) is None
    assert pattern_range(None) == ("", None)


@pytest.mark.parametrize(("pattern", "names"), [
    ("abc*", ("abc", "abd")), (" ABC.d", ("abc", "abd")), ("abc", ("abc", "abd")), ("ab*|a.c|", ("a", "b")), ("a|b*", ("", None)),
    ("t_1|t_2*|t_10", ("t_", "t`")), ("*a", ("", None)), (".", ("", None)), ("", ("", None)), ("ab\u00e4c*", ("ab", "ac")),
    ("a~*", ("a~", "a\x7f")), ("\u00e4*", ("", None)), ("|a", ("", None)),
    (" ", ("", None)), ("|", ("", None))])
def test_names_that_a_pattern_matches_are_a_range(pattern, names):
    assert pattern_range(pattern) == names
