"""Hive's value syntax; the examples are those of Hive's own HiveConf and MetastoreConf tests and documentation."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metastore.config import values
from metastore.config.values import choice, duration, integer


@pytest.mark.parametrize(("text", "unit", "seconds"), [
    ("300s", "s", 300), ("300", "s", 300), ("5m", "s", 300), ("2min", "s", 120), ("12h", "s", 43200), ("11d", "d", 950400),
    ("11", "d", 950400), ("1000ms", "s", 1), ("1000", "ms", 1), ("10800ms", "ms", 10.8), ("3 hours", "s", 10800),
    ("1 DAY", "s", 86400), ("7days", "s", 604800), ("500us", "ms", 0.0005), (" 60sec ", "s", 60), ("-1", "h", -3600),
    ("0", "s", 0), ("90seconds", "ms", 90), ("5minutes", "s", 300), ("250msec", "s", 0.25),
])
def test_durations(text, unit, seconds):
    assert duration(unit).parse(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize("text", ["", "s", "3x", "3.5s", "1s2", "--1", "5 m m", "1e3", "99999999999999999999d", "ms5"])
def test_what_is_no_duration(text):
    with pytest.raises(ValueError):
        duration("s").parse(text)


@given(st.integers(-10**9, 10**9), st.sampled_from(["us", "ms", "s", "m", "h"]))
def test_a_written_duration_reads_back(number, unit):
    kind = duration(unit)
    value = kind.parse(f"{number}{unit}")
    assert kind.format(value) == f"{number}{unit}"


@given(st.timedeltas(timedelta(0), timedelta(days=10**5)), st.sampled_from(["ms", "s", "d"]))
def test_any_duration_reads_back(value, unit):
    kind = duration(unit)
    assert kind.parse(kind.format(value)) == value


@pytest.mark.parametrize(("text", "size"), [("104857600", 104857600), ("100mb", 104857600), ("1 GB", 2**30), ("64kb", 65536),
                                            ("7b", 7), ("2k", 2048), ("3M", 3 * 2**20), ("1g", 2**30)])
def test_sizes(text, size):
    assert values.SIZE.parse(text) == size


@pytest.mark.parametrize(("kind", "text"), [
    (values.SIZE, "-1"), (values.SIZE, "1tb2"), (values.FLAG, "yes"), (values.FLAG, ""), (values.FRACTION, "-0.1"),
    (values.FRACTION, "inf"), (values.FRACTION, "nan"), (values.FRACTION, "ten"), (integer(1, 5), "0"), (integer(1, 5), "6"),
    (integer(), "1.0"), (choice("a", "b"), "c"), (values.DATABASE_URL, "jdbc:mysql://h/db"),
    (values.DATABASE_URL, "jdbc:oracle:thin:@//h:1521/x"), (values.DATABASE_URL, "jdbc:postgresql://h/d?sslfactory=com.acme.Own"),
    (values.DATABASE_URL, "jdbc:postgresql://h/d?targetServerType=preferSecondary"), (values.DATABASE_URL, "jdbc:postgresql://h/d?socketFactory=x"),
    (values.DATABASE_URL, "jdbc:derby:;databaseName=metastore_db;create=true"), (values.DATABASE_URL, "h/db"),
], ids=lambda value: value if isinstance(value, str) else value.expected[:20])
def test_refusals(kind, text):
    with pytest.raises(ValueError):
        kind.parse(text)


@pytest.mark.parametrize(("text", "url"), [
    ("jdbc:postgresql://db.example:5432/hive", "postgresql://db.example:5432/hive"),
    ("postgres://u:p@h/db?sslmode=require", "postgresql://u:p@h/db?sslmode=require"), ("", ""),
    ("jdbc:postgresql://h1:5432,h2:5433/hive?targetServerType=primary&loadBalanceHosts=false", "postgresql://h1:5432,h2:5433/hive?target_session_attrs=read-write"),
    ("jdbc:postgresql://h/hive?ssl=true", "postgresql://h/hive?sslmode=verify-full"),
    ("jdbc:postgresql://h/hive?sslmode=require&ssl=true", "postgresql://h/hive?sslmode=require"),
    ("jdbc:postgresql://h/hive?ssl=true&sslfactory=org.postgresql.ssl.NonValidatingFactory", "postgresql://h/hive?sslmode=require"),
    ("jdbc:postgresql://h/hive?currentSchema=a,b&user=u&password=p%26q", "postgresql://h/hive?options=-c%20search_path%3Da%2Cb&user=u&password=p%26q"),
    ("jdbc:postgresql://h/hive?tcpKeepAlive=true&loginTimeout=5&ApplicationName=x&prepareThreshold=0&reWriteBatchedInserts=true",
     "postgresql://h/hive?keepalives=1&connect_timeout=5&application_name=x"),
    ("jdbc:postgresql:hive", "postgresql://localhost/hive"), ("jdbc:postgresql://h:1/", "postgresql://h:1"),
    (" jdbc:postgresql://h/hive?createDatabaseIfNotExist=true ", "postgresql://h/hive")])
def test_database_urls(text, url):
    assert values.DATABASE_URL.parse(text) == url


def test_flags_are_written_as_hive_writes_them():
    assert values.FLAG.format(value := values.FLAG.parse(" TRUE ")) == "true"
    assert value is True
    assert values.WORDS.format(values.WORDS.parse(" a, b ,,c")) == "a,b,c"
