"""Every type, thousands of rows, NULL in every column: what we write, read by Hive 4 and by Trino: `make interop-tables`.

A column takes its values and NULL in turn, each column at its own pace, so that each meets each beside it, many times in a
batch and across the borders of batches. Readers spell values differently: ``spelled`` says what is the same. Not here:
fractions of the last second before 1970, which Trino 380 takes for those of the first one after.
"""

from datetime import datetime

import pytest

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

SCALARS = {
    "BOOLEAN": {"true": "true", "false": "false"},
    "TINYINT": {"-128": "-128", "127": "127"},
    "SMALLINT": {"-32768": "-32768", "32767": "32767"},
    "INT": {"-2147483648": "-2147483648", "0": "0", "2147483647": "2147483647"},
    "BIGINT": {"-9223372036854775808": "-9223372036854775808", "9223372036854775807": "9223372036854775807"},
    "FLOAT": {"'NaN'": "NaN", "'-Infinity'": "-Infinity", "-0.1": "-0.1", "1.5": "1.5"},
    "DOUBLE": {"'NaN'": "NaN", "'Infinity'": "Infinity", "4.9e-324": "4.9e-324", "-0.1": "-0.1"},
    "DECIMAL(7,2)": {"-99999.99": "-99999.99", "0": "0", "1.50": "1.5", "100": "100"},
    "DECIMAL(18,0)": {"999999999999999999": "999999999999999999", "-1": "-1"},
    "DECIMAL(19,0)": {"9999999999999999999": "9999999999999999999", "-1": "-1"},
    "DECIMAL(18,18)": {"-0.999999999999999999": "-0.999999999999999999", "0.1": "0.1"},
    "DECIMAL(38,10)": {"-9999999999999999999999999999.9999999999": "-9999999999999999999999999999.9999999999", "1.5": "1.5"},
    "STRING": {"''": "", "'größe 你好'": "größe 你好", "repeat('x', 3000)": "x" * 3000},
    "VARCHAR(5)": {"'größe'": "größe", "''": ""},
    "CHAR(5)": {"'ab   '": "ab", "'größe'": "größe"},
    "BINARY": {"X''": "", "X'00FF10'": "00 ff 10"},
    "DATE": {"'1582-10-15'": "1582-10-15", "'1969-12-31'": "1969-12-31", "'9999-12-31'": "9999-12-31"},
    "TIMESTAMP": {"'1960-02-29 12:00:00.125'": "1960-02-29T12:00:00.125000", "'2013-03-10 02:30:00'": "2013-03-10T02:30:00"},
}
NESTED = {
    "ARRAY<INT>": {"array()": "[]", "array(1, null, 3)": "[1, null, 3]", "sequence(1, 40)": f"{list(range(1, 41))}"},
    "MAP<STRING,BIGINT>": {"map()": "{}", "map('k', 7L)": "{k=7}", "map('k', null)": "{k=null}"},
    "STRUCT<x:INT,y:ARRAY<STRING>>": {"struct(1, array('z', null))": "[1, [z, null]]", "struct(null, null)": "[null, null]"},
    "ARRAY<STRUCT<a:STRING,b:MAP<INT,STRING>>>": {"array(struct('é', map(1, 'x')), null)": "[[é, {1=x}], null]"},
}
"""For each type the values as Spark's SQL has them, and as they are spelled here."""

ROWS = 2500


def spelled(kind, text):
    """Spell a value so that those of all readers can be compared."""
    if text is None:
        return None
    match kind.partition("(")[0]:
        case "BOOLEAN":
            return text.lower()
        case "FLOAT" | "DOUBLE":
            return repr(float(text))
        case "DECIMAL":
            return text.rstrip("0").rstrip(".") if "." in text else text
        case "CHAR":
            return text.rstrip(" ")
        case "TIMESTAMP":
            return datetime.fromisoformat(text).isoformat()
    return text


@pytest.mark.parametrize("types", [SCALARS, SCALARS | NESTED], ids=["scalars", "nested too"])
def test_every_type_and_null_in_every_column(acid_session, db, hive, trino, types):
    name = f"{db}.t"
    kinds = list(types)
    choices = [[*types[kind].items(), ("NULL", None)] for kind in kinds]
    acid_session.sql(f"CREATE TABLE {name} (id INT, {', '.join(f'c{at} {kind}' for at, kind in enumerate(kinds))}) "
                     "STORED AS ORC TBLPROPERTIES ('transactional'='true')")

    def expected(number):
        chosen = [None if number >= ROWS else column[number // (at + 1) % len(column)][1] for at, column in enumerate(choices)]
        return tuple(map(spelled, kinds, chosen))

    values = [f"CASE WHEN id >= {ROWS} THEN NULL ELSE " + "array({})[CAST(id DIV {} % {} AS INT)] END AS c{}".format(
        ", ".join(f"CAST({sql} AS {kind})" for sql, _ in column), at + 1, len(column), at)
        for at, (kind, column) in enumerate(zip(kinds, choices, strict=True))]
    rows = acid_session.spark.range(0, ROWS + 3, numPartitions=1).selectExpr("CAST(id AS INT) AS id", *values)
    rows_of = {number: expected(number) for number in range(ROWS + 3)}

    def must_agree():
        told = {"Trino": trino.rows(name)}
        for vectorized in (False, True):
            told[f"Hive, {'vectorized' if vectorized else 'row by row'}"] = hive.rows(
                acid_session.client, name, vectorized=vectorized)
        for reader, found in told.items():
            read = {int(row[0]): tuple(map(spelled, kinds, row[1:])) for row in found}
            assert (reader, len(found), set(read)) == (reader, len(rows_of), set(rows_of))
            differ = [(reader, number, kind, one, two) for number in rows_of
                      for kind, one, two in zip(kinds, read[number], rows_of[number], strict=True) if one != two]
            assert differ[:5] == []

    assert acid_session.insert(name, rows) == ROWS + 3
    must_agree()
    everything = ", ".join(f"c{at} = c{at}" for at in range(len(kinds)))
    acid_session.sql(f"UPDATE {name} SET {everything} WHERE id % 3 = 0")
    acid_session.sql(f"DELETE FROM {name} WHERE id % 5 = 1")
    rows_of = {number: row for number, row in rows_of.items() if number % 5 != 1}
    must_agree()
    table = acid_session.table(name)
    ours = sorted(row[0] for row in table.selectExpr("to_json(struct(*))").collect())
    assert ours == sorted(row[0] for row in rows.where("id % 5 <> 1").selectExpr("to_json(struct(*))").collect())
