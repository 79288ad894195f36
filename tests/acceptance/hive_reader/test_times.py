"""Dates and times from year 1 to 9999: what each writer stored is what each reader shows, and what a condition finds."""

import shutil
from datetime import datetime
from decimal import Decimal
from operator import itemgetter
from pathlib import Path
from typing import Any

import pytest

from metastore.client import MetastoreClient, scan
from metastore.streaming import Json, connect, orc_writer
from metastore.streaming.records import RecordError
from tests.support.able import AbleClient
from tests.support.acid.creating import create_database, create_table, snapshot
from tests.support.acid.time_vectors import ConversionVector, conversion_vectors, time_vectors
from tests.support.compacting import Compacting
from tests.support.hive_oracle.oracle import HiveOracle
from tests.support.spark_sessions import drop_database

pytestmark = pytest.mark.spark

COLUMNS = {"n": "int", "d": "date", "t": "timestamp", "ts": "array<timestamp>", "s": "struct<d:date,t:timestamp>",
           "m": "map<string,timestamp>"}
TIMES = [one for one in time_vectors() if not one.refusal]
EXPECTED = [(n, one.text[:10], one.text) for n, one in enumerate(TIMES)]
_SHOWN = "n, CAST(d AS STRING), CAST(t AS STRING), CAST(ts[0] AS STRING), CAST(s.d AS STRING), CAST(s.t AS STRING), CAST(m['k'] AS STRING)"


@pytest.fixture
def client(lakehouse):
    with AbleClient(lakehouse.uri) as connected:
        create_database(connected)
        yield connected
        drop_database(lakehouse.uri, "d")


@pytest.fixture
def compacting(lakehouse, spark, nobody_reads):
    loops = Compacting(lakehouse.database_url, lakehouse.uri, spark)
    yield loops
    loops.close()


def _record(n: int, at: datetime) -> dict[str, Any]:
    return {"n": n, "d": at.date(), "t": at, "ts": [at, None], "s": {"d": at.date(), "t": at}, "m": {"k": at}}


def _as_json(n: int, at: datetime) -> dict[str, Any]:
    day, time = str(at.date()), str(at)
    return {"n": n, "d": day, "t": time, "ts": [time, None], "s": {"d": day, "t": time}, "m": {"k": time}}


def _sql(n: int, text: str) -> str:
    d, t = f"DATE'{text[:10]}'", f"TIMESTAMP'{text}'"
    return f"({n}, {d}, {t}, array({t}, NULL), named_struct('d', {d}, 't', {t}), map('k', {t}))"


def _hive(n: int, text: str) -> list[Any]:
    return [n, text[:10], text, [text, None], [text[:10], text], [["k", text]]]


def _all_the_same(n: int, *shown: str | None) -> tuple[int, str | None, str | None]:
    """Check that all columns of a row show one date and one time, and return (n, date, time)."""
    d, t, in_list, in_struct, beside, in_map = shown
    assert (d, t, t, t) == (in_struct, in_list, beside, in_map)
    return n, d, t


def _by_spark(session: Any, name: str) -> list[Any]:
    return sorted(_all_the_same(*row) for row in session.sql(f"SELECT {_SHOWN} FROM {name}").collect())


def _text(value: Any) -> str:
    return str(value).rstrip("0").rstrip(".") if "." in str(value) else str(value)


def _by_scan(client: MetastoreClient, name: str) -> list[Any]:
    rows = scan(name, client=client).to_arrow().to_pylist(maps_as_pydicts="strict")
    return sorted(_all_the_same(row["n"], *map(_text, (row["d"], row["t"], row["ts"][0], row["s"]["d"], row["s"]["t"], row["m"]["k"])))
                  for row in rows)


def _by_hive(oracle: HiveOracle, client: MetastoreClient, place: Path, name: str) -> list[Any]:
    found = [row.values for row in oracle.rows(place, snapshot(client, name), COLUMNS)]
    return sorted(_all_the_same(n, *map(_text, (d, t, ts[0], s[0], s[1], m[0][1]))) for n, d, t, ts, s, m in found)


def test_every_reader_shows_what_every_writer_stored(
        client: MetastoreClient, oracle: HiveOracle, acid_session: Any, compacting: Compacting, tmp_path: Path) -> None:
    places = {name: Path(create_table(client, name, COLUMNS)) for name in ("by_spark", "by_stream", "by_hive")}
    places["plain"] = Path(create_table(client, "plain", COLUMNS, transactional_properties="insert_only"))
    acid_session.sql(f"INSERT INTO d.by_spark VALUES {', '.join(_sql(n, one.text) for n, one in enumerate(TIMES))}")
    records = [_record(n, one.time) for n, one in enumerate(TIMES)]
    with connect("d.by_stream", client=client, transactions_per_batch=4) as stream:
        for turn in range(4):  # a part each: with times before 1970 and without, in either order
            with stream.transaction():
                for record in records[turn::4]:
                    stream.write(record)
        open_file = _by_spark(acid_session, "d.by_stream")
    assert open_file == EXPECTED, "while the writer goes on"
    with connect("d.plain", client=client, records=Json()) as stream, stream.transaction():
        stream.write([_as_json(n, one.time) for n, one in enumerate(TIMES)])
    with connect("d.by_hive", client=client, transactions_per_batch=1) as stream, stream.transaction():
        stream.write({"n": -1})  # its write id is Hive's, which takes its place
    shutil.rmtree(places["by_hive"] / "delta_0000001_0000001_0000")
    oracle.write(places["by_hive"], COLUMNS, write_id=1, inserts=[_hive(n, one.text) for n, one in enumerate(TIMES)])

    for name, place in places.items():
        assert _by_spark(acid_session, f"d.{name}") == EXPECTED, name
        assert _by_scan(client, f"d.{name}") == EXPECTED, name
        if name != "plain":
            assert _by_hive(oracle, client, place, name) == EXPECTED, name

    acid_session.sql("UPDATE d.by_stream SET n = n WHERE n = 3")
    compacting.compact("d", "by_stream", "major")
    assert _by_spark(acid_session, "d.by_stream") == EXPECTED
    assert _by_scan(client, "d.by_stream") == EXPECTED
    [base] = places["by_stream"].glob("base_*")
    shutil.copytree(base, tmp_path / base.name.partition("_v")[0])  # Hive 2.3 knows no names with a transaction
    assert _by_hive(oracle, client, tmp_path, "by_stream") == EXPECTED


@pytest.mark.parametrize("writer", ["stream", "spark"])
def test_conditions_find_each_time(client: MetastoreClient, acid_session: Any, writer: str) -> None:
    """Each row in a file of its own, so that a file's statistics are those of one time."""
    create_table(client, "t", {"n": "int", "d": "date", "t": "timestamp"}, keys={"p": "int"})
    if writer == "spark":
        values = ", ".join(f"({n}, DATE'{one.text[:10]}', TIMESTAMP'{one.text}', {n})" for n, one in enumerate(TIMES))
        acid_session.sql(f"INSERT INTO d.t VALUES {values}")
    else:
        with connect("d.t", client=client) as stream, stream.transaction():
            stream.write([{"n": n, "d": one.time.date(), "t": one.time, "p": n} for n, one in enumerate(TIMES)])

    def found(condition: str) -> set[tuple[int, int]]:
        """Pairs of the vector that is asked for and the row that is found."""
        asked = (f"SELECT {n} AS asked, n FROM d.t WHERE {condition.format(t=one.text, d=one.text[:10])}" for n, one in enumerate(TIMES))
        return {tuple(row) for row in acid_session.sql(" UNION ALL ".join(asked)).collect()}

    def expected(holds: Any) -> set[tuple[int, int]]:
        return {(asked, n) for asked, one in enumerate(TIMES) for n, row in enumerate(TIMES) if holds(row, one)}

    assert found("t = TIMESTAMP'{t}'") == expected(lambda row, one: row.time == one.time)
    assert found("d = DATE'{d}'") == expected(lambda row, one: row.time.date() == one.time.date())
    assert found("t <= TIMESTAMP'{t}' AND d >= DATE'{d}'") == expected(
        lambda row, one: row.time <= one.time and row.time.date() >= one.time.date())
    assert found("t > TIMESTAMP'{t}' OR d < DATE'{d}'") == expected(
        lambda row, one: row.time > one.time or row.time.date() < one.time.date())
    for text in ("0001-01-01 00:00:00", "1500-05-05 10:00:00.000001"):
        assert acid_session.update("d.t", {"n": "n + 100"}, where=f"t = TIMESTAMP'{text}'") == 1
        assert acid_session.delete("d.t", where=f"n >= 100 AND t = TIMESTAMP'{text}' AND d IN (DATE'{text[:10]}')") == 1


@pytest.mark.parametrize("properties", [{}, {"transactional_properties": "insert_only"}])
def test_an_old_file_is_mended_by_what_scan_shows(
        client: MetastoreClient, spark: Any, acid_session: Any, compacting: Compacting, monkeypatch: pytest.MonkeyPatch, properties: dict[str, str]) -> None:
    """A file of release 0.2, made by Arrow's own writer: its fractions before 1970 are below 0."""
    create_table(client, "t", {"n": "int", "t": "timestamp"}, **properties)
    rows = [{"n": n, "t": datetime(1965, 9, 12, 1, 2, n, n)} for n in range(3)]
    with monkeypatch.context() as patched, connect("d.t", client=client) as stream, stream.transaction():
        patched.setattr(orc_writer, "_is_early", lambda _times: False)
        stream.write(rows)
    with pytest.raises(Exception, match="nanos > 999999999 or < 0"):
        acid_session.sql("SELECT * FROM d.t").collect()

    spark.createDataFrame(scan("d.t", client=client).to_arrow()).createOrReplaceTempView("right_times")
    acid_session.sql("INSERT OVERWRITE d.t SELECT * FROM right_times")
    spark.catalog.dropTempView("right_times")
    acid_session.sql("INSERT INTO d.t VALUES (3, NULL)")
    compacting.compact("d", "t", "major")

    expected = [*rows, {"n": 3, "t": None}]
    assert sorted((row.asDict() for row in acid_session.sql("SELECT * FROM d.t").collect()), key=itemgetter("n")) == expected
    assert sorted(scan("d.t", client=client).to_arrow().to_pylist(), key=itemgetter("n")) == expected


def test_what_no_file_can_hold_is_refused_by_every_writer(client: MetastoreClient, acid_session: Any) -> None:
    create_table(client, "t", COLUMNS)
    create_table(client, "plain", COLUMNS, transactional_properties="insert_only")
    refused = [one for one in time_vectors() if one.refusal]
    assert len(refused) == 5
    for one in refused:
        for name in ("t", "plain"):
            with connect(f"d.{name}", client=client) as stream, stream.transaction():
                for column, value in _record(0, one.time).items():
                    if column == "n" or (column == "d" and not one.is_day_refused):
                        continue
                    with pytest.raises(RecordError, match=f"Record 1, field {column}: .* cannot be stored: files of Hive's have no days"):
                        stream.write([{"n": 1}, {"n": 2, column: value}])
            for values in (f"(0, NULL, TIMESTAMP'{one.text}', NULL, NULL, NULL)", f"(0, NULL, NULL, array(TIMESTAMP'{one.text}'), NULL, NULL)",
                           f"(0, DATE'{one.text[:10]}', NULL, NULL, NULL, NULL)")[:3 if one.is_day_refused else 2]:
                with pytest.raises(Exception, match="cannot be stored: files of Hive's have no days"):
                    acid_session.sql(f"INSERT INTO d.{name} VALUES {values}")
    assert acid_session.sql("SELECT * FROM d.t UNION ALL SELECT * FROM d.plain").count() == 0


def test_a_changed_type_shows_the_same_in_every_reader(client: MetastoreClient, oracle: HiveOracle, acid_session: Any) -> None:
    vectors = conversion_vectors()
    pairs = list(dict.fromkeys((one.old, one.new) for one in vectors))
    columns = {f"c{at}": old for at, (old, _) in enumerate(pairs)}
    place = Path(create_table(client, "t", {"n": "int", **columns}))
    rows = [(n, f"c{pairs.index((one.old, one.new))}", one) for n, one in enumerate(vectors)]
    with connect("d.t", client=client) as stream, stream.transaction():
        for n, column, one in rows:
            number = float(one.value) if one.old in ("float", "double") else int(one.value) if one.old.endswith("int") else one.value
            stream.write({"n": n, column: number})
    table = client.get_table("d", "t")
    for field in table.sd.cols[1:]:
        field.type = pairs[int(field.name[1:])][1]
    client.setMetaConf("metastore.disallow.incompatible.col.type.changes", "false")
    client.alter_table("d", "t", table)

    types = {"n": "int", **{f"c{at}": new for at, (_, new) in enumerate(pairs)}}
    hives = {row.values[0]: row.values[1:] for row in oracle.rows(place, snapshot(client, "t"), types)}
    sparks = {row[0]: row[1:] for row in acid_session.sql("SELECT n, " + ", ".join(f"CAST({c} AS STRING)" for c in columns) + " FROM d.t").collect()}
    ours = {row.pop("n"): list(row.values()) for row in scan("d.t", client=client).to_arrow().to_pylist()}

    def differing(found: dict[int, Any], is_spark: bool = False) -> dict[ConversionVector, str | None]:
        """Vectors whose value is another; Spark knows a VARCHAR as a STRING, and cuts it only when it writes."""
        wrong = {}
        for n, column, one in rows:
            value = None if (value := found[n][int(column[1:])]) is None else _plain(value, one.new)
            cut = int(one.new[:-1].partition("(")[2]) if is_spark and "char(" in one.new else None
            if (value and value[:cut]) != _plain(one.shown, one.new):
                wrong[one] = value
        return wrong

    assert differing(sparks, is_spark=True) == {}
    assert differing(hives) == {}
    assert differing(ours) == {}


def _plain(text: Any, kind: str) -> str | None:
    """Return a value as text, the same for all readers: blanks of a CHAR and zeros of a number do not count."""
    if text in ("", None):
        return None
    if kind in ("float", "double"):
        return str(float(text))
    if kind.startswith("decimal"):
        return f"{Decimal(str(text)).normalize():f}"
    return str(text).rstrip(" ") if kind.startswith("char") else str(text)
