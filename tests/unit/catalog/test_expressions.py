"""What CHECK and DEFAULT may call: they are evaluated in the process of whoever writes."""

import pytest

from metastore.catalog.rules.expressions import refused_expression


@pytest.mark.parametrize("text", [
    "1", "'new'", "NULL", "-1.5e3", "amount > 0 AND amount < 100", "NOT (a IS NULL)", "a IN (1, 2)", "a BETWEEN (1) AND (2)",
    "concat('a', 'b')", "lower(k) = 'big' OR n < 100", "cast(1 AS DECIMAL(10, 2))", "current_timestamp()", "CURRENT_DATE",
    "`odd name` > 0 AND s.`f` = 'x'", "code RLIKE '^\\\\d+$'", "'it''s reflect(x)' = a", '"reflect(" = a', "DATE '2020-01-01' < d",
    "CASE WHEN (a > 1) THEN (b) ELSE (c) END = 1", "exists(tags, x -> x > 0)", "m['k'] = 1", "a::string = 'x'", "X'00FF' = b",
    "size(array(1, 2)) > 0", "substring(`a`, 1, 2) LIKE ('a%')"])
def test_what_computes_a_value_may_be_called(text):
    assert refused_expression(text) is None


@pytest.mark.parametrize(("text", "why"), [
    ("reflect('java.lang.System', 'exit', 1)", "reflect"), ("a > 0 OR JAVA_METHOD('a', 'b') = 1", "JAVA_METHOD"),
    ("try_reflect ('a', 'b')", "try_reflect"), ("`reflect`('a')", "`reflect`"), ('"reflect"(1)', "reflect"), ("my_udf(a)", "my_udf"),
    ("db.lower(a)", "lower"), ("system . builtin . reflect(a)", "reflect"), ("identifier('reflect')('a')", "identifier"),
    ("(reflect)('a')", "no function"), ("a IN (SELECT 1)", "SELECT"), ("lower(reflect\n\t('a'))", "reflect"),
    ("r'\\' = reflect('a') OR ''=''", "raw strings"), ('"a\\" = reflect(1) AND b = "c"', "plain expression"),
    ("1 -- x", "plain expression"), ("reflect/**/('a')", "plain expression"), ("1 /* x */", "plain expression"), ("a; DROP", "plain"),
    ("${env:X}", "plain"), ("{fn reflect('a')}", "plain"), ("'open", "plain"), ("a\u00a0> reflect\u2003(1)", "plain"),
    ("exists (MAP a USING 'touch x' AS (b INT))", "USING"), ("a IN (TABLE t)", "TABLE"),
    ("xpath(a, 'b')", "xpath"), ("from_xml(a)", "from_xml"), ("repeat('x', 2000000000)", "repeat"), ("1" * 10_001, "characters")])
def test_nothing_else_is_called_however_it_is_written(text, why):
    assert why in (refused_expression(text) or "")
