"""Random conditions, of which files and partitions are shown what they can answer. The model is parquet, which is shown nothing.

CONDITIONS=5000 SEED=7: how many, and which. Most files have one row, so that their statistics tell it.
"""

import os
from random import Random

import pytest

pytestmark = [pytest.mark.spark, pytest.mark.long, pytest.mark.timeout(3600)]

COLUMNS = {
    "n": "INT",
    "i": "INT",
    "l": "BIGINT",
    "f": "DOUBLE",
    "r": "FLOAT",
    "m": "DECIMAL(6,2)",
    "s": "STRING",
    "c": "CHAR(3)",
    "v": "VARCHAR(4)",
    "b": "BOOLEAN",
    "d": "DATE",
    "t": "TIMESTAMP",
    "st": "STRUCT<i: INT, s: STRING>",
}
KEYS = {"p": "INT", "k": "STRING", "kc": "CHAR(2)", "kd": "DATE"}
TEXTS = ["''", "'a'", "'A'", "'ab'", "'b '", "'b%'", "'ä'", "'zz'"]
VALUES = {
    "INT": ["-1", "0", "1", "2", "7", "2147483647"],
    "BIGINT": ["-1", "0", "1", "9223372036854775807"],
    "DOUBLE": ["-0.0D", "0.0D", "1.5D", "DOUBLE('NaN')", "DOUBLE('-Infinity')", "7D"],
    "FLOAT": ["-0.0F", "0.0F", "1.5F", "FLOAT('NaN')", "0.1F"],
    "DECIMAL(6,2)": ["0.00", "1.50", "-1.50", "9999.99"],
    "STRING": TEXTS,
    "CHAR(3)": TEXTS,
    "CHAR(2)": TEXTS,
    "VARCHAR(4)": TEXTS,
    "BOOLEAN": ["true", "false"],
    "DATE": ["DATE'1969-12-31'", "DATE'2026-01-01'", "DATE'1500-01-01'"],
    "TIMESTAMP": [
        "TIMESTAMP'1969-12-31 12:00:00'",
        "TIMESTAMP'2026-01-01 00:00:00'",
        "TIMESTAMP'2026-01-01 00:00:00.000001'",
    ],
}


def declared(columns: dict[str, str]) -> str:
    return ", ".join(f"{name} {kind}" for name, kind in columns.items())


def value(random: Random, kind: str) -> str:
    if kind.startswith("STRUCT"):
        return random.choice(["NULL", f"named_struct('i', {value(random, 'INT')}, 's', {value(random, 'STRING')})"])
    return "NULL" if random.random() < 0.2 else random.choice(VALUES[kind])


def atom(random: Random) -> str:
    column, kind = random.choice([*COLUMNS.items(), *KEYS.items(), ("st.i", "INT"), ("st.s", "STRING")])
    if kind.startswith("STRUCT"):
        return f"st IS {random.choice(['NULL', 'NOT NULL'])}"
    one, other = value(random, kind), value(random, kind)
    another = random.choice([name for name, like in {**COLUMNS, **KEYS}.items() if like == kind])
    forms = [
        f"{column} {random.choice(['=', '<>', '<', '<=', '>', '>=', '<=>'])} {one}",
        f"{column} IN ({one}, {other})",
        f"{column} NOT IN ({one}, {other})",
        f"{column} IS NULL",
        f"{column} IS NOT NULL",
        f"{column} BETWEEN {one} AND {other}",
        f"{column} = {another}",
        f"coalesce({column}, {one}) = {other}",
        f"{one} < {column}",
    ]
    if kind in ("INT", "BIGINT", "DOUBLE", "FLOAT", "DECIMAL(6,2)"):
        forms += [
            f"abs({column}) > 1",
            f"{column} = {random.choice(['1.0', '1L', '1.5', '2147483648L', '0.0D'])}",
            f"{column} % 2 = 0",
        ]
    if "CHAR" in kind or kind == "STRING":
        pattern = random.choice(["a%", "%b", "%", "_", "b\\\\%", "A_", ""])
        forms += [
            f"{column} LIKE '{pattern}'",
            f"{column} NOT LIKE '{pattern}'",
            f"upper({column}) = {other}",
            f"length({column}) > 1",
            f"{column} = {column} || ''",
        ]
    if kind == "BOOLEAN":
        forms += [column, f"NOT {column}"]
    if kind in ("DATE", "TIMESTAMP"):
        forms += [
            f"{column} >= {random.choice(VALUES['DATE'] + VALUES['TIMESTAMP'])}",
            f"year({column}) = 2026",
            f"{column} < '2026-01-01'",
        ]
    return random.choice(forms)


def condition(random: Random, depth: int) -> str:
    kind = random.random()
    if depth == 0 or kind < 0.25:
        return atom(random)
    if kind < 0.4:
        return f"NOT ({condition(random, depth - 1)})"
    if kind < 0.45:
        return f"({condition(random, depth - 1)}) <=> ({condition(random, depth - 1)})"
    if kind < 0.5:
        return f"CASE WHEN {condition(random, depth - 1)} THEN {condition(random, depth - 1)} ELSE {atom(random)} END"
    return f"({condition(random, depth - 1)}) {random.choice(['AND', 'OR'])} ({condition(random, depth - 1)})"


def test_random_conditions(catalog, db) -> None:
    seed, count = int(os.environ.get("SEED", "1")), int(os.environ.get("CONDITIONS", "400"))
    random = Random(seed)
    catalog.sql(
        f"CREATE TABLE {db}.t ({declared(COLUMNS)}) PARTITIONED BY ({declared(KEYS)}) STORED AS ORC TBLPROPERTIES ('transactional'='true')"
    )
    catalog.sql(f"CREATE TABLE {db}.model ({declared(COLUMNS | KEYS)}) USING parquet")
    partitions = [[value(random, kind).replace("''", "NULL") for kind in KEYS.values()] for _ in range(4)]  # an empty text is NULL there
    for delta in range(12):
        rows = [
            [
                str(10 * delta + row),
                *(value(random, kind) for kind in list(COLUMNS.values())[1:]),
                *random.choice(partitions),
            ]
            for row in range(random.choice([1, 1, 4]))
        ]
        for table in ("t", "model"):
            catalog.sql(f"INSERT INTO {db}.{table} VALUES " + ", ".join("(" + ", ".join(row) + ")" for row in rows))
    catalog.sql(f"DELETE FROM {db}.t WHERE n = 20")
    catalog.sql(f"CREATE TEMPORARY VIEW kept AS SELECT * FROM {db}.model WHERE n <> 20")

    def met(table: str, where: str) -> list[int]:
        return sorted(row.n for row in catalog.sql(f"SELECT n FROM {table} WHERE {where}").collect())

    catalog.conf.set("spark.sql.parquet.filterPushdown", "false")
    wrong = []
    for _ in range(count):
        where = condition(random, 3)
        answer, right = met(f"{db}.t", where), met("kept", where)
        if answer != right:
            wrong.append(f"{where}: {answer}, not {right}")
    assert not wrong, f"SEED={seed}, {len(wrong)} of {count}\n" + "\n".join(wrong[:20])
