"""Statements of Spark's SQL over ACID tables, and what they must do: data alone, for whichever client runs them.

{facts} is nested, {days} partitioned, {spread} partitioned and bucketed. A change says what becomes of its table as a
query over the rows before it, {m}; a query says nothing, since it is asked of the ACID tables and of their models. A
definition is run on a table of each kind, and ``probe`` must show the same of both. A mistake says what it is refused
with: Spark's own condition, or one of ours, and the words that the sentence must have.
"""

from typing import NamedTuple

TABLES = {
    "facts": """(id INT, name STRING, amount DECIMAL(10,2), place STRUCT<city: STRING, zip: INT>, tags ARRAY<STRING>,
                 scores MAP<STRING, INT>, at TIMESTAMP)""",
    "days": "(id INT, name STRING, amount DOUBLE) PARTITIONED BY (day DATE, region STRING)",
    "spread": "(id BIGINT, name STRING, seen BOOLEAN) PARTITIONED BY (k INT) CLUSTERED BY (id) INTO 3 BUCKETS",
}
ACID = "STORED AS ORC TBLPROPERTIES ('transactional'='true')"
OURS = {"UNSUPPORTED", "INVALID_VERSION", "InvalidOperationError", "InvalidInputError", "MetaError"}
"""Conditions of our own errors; any other is Spark's."""


def columns_of(table: str) -> str:
    """Its columns and behind them its partition keys, as Spark writes a schema."""
    return TABLES[table].partition(" CLUSTERED BY")[0].replace(") PARTITIONED BY (", ", ")[1:-1]

COLUMNS = {
    "facts": ("id", "name", "amount", "place", "tags", "scores", "at"),
    "days": ("id", "name", "amount", "day", "region"),
    "spread": ("id", "name", "seen", "k"),
}


class Change(NamedTuple):
    """A statement that writes ``table``; ``model``: its rows afterwards, as a query over those before."""

    table: str
    sql: str
    model: str


class Definition(NamedTuple):
    """A statement that defines something of {t}; ``probe``: a query that shows it."""

    sql: str
    probe: str


class Mistake(NamedTuple):
    """A statement that is refused; ``condition``: the error's class; ``said``: words of its message."""

    sql: str
    condition: str
    said: tuple[str, ...]


def added(table: str, sql: str, query: str) -> Change:
    """Return the Change of an INSERT of a query's rows."""
    return Change(table, sql, f"SELECT * FROM {{m}} UNION ALL ({query})")


def kept(table: str, sql: str, condition: str) -> Change:
    """Return the Change of a statement that leaves only rows where ``condition`` holds."""
    return Change(table, sql, f"SELECT * FROM {{m}} WHERE {condition}")


def values(table: str, rows: str) -> Change:
    """INSERT ... VALUES."""
    return added(table, f"INSERT INTO {{{table}}} VALUES {rows}", f"SELECT * FROM VALUES {rows}")


def updated(table: str, sets: str, condition: str) -> Change:
    """Return the Change of an UPDATE; ``sets``: ``column = expression`` pairs of whole columns, parted by semicolons."""
    pairs = [one.strip().split(" = ", 1) for one in sets.split(";")]
    changed = ", ".join(f"IF({condition}, {value}, {name}) AS {name}" for name, value in pairs)
    columns = ", ".join(name for name, _ in pairs)
    order = ", ".join(COLUMNS[table])
    assigned = ", ".join(f"{name} = {value}" for name, value in pairs)
    return Change(table, f"UPDATE {{{table}}} SET {assigned} WHERE {condition}",
                  f"SELECT {order} FROM (SELECT * EXCEPT ({columns}), {changed} FROM {{m}})")


CHANGES = (
    # INSERT
    values("facts", """(1, 'a', 1.50BD, named_struct('city', 'Rome', 'zip', 10), array('x', 'y'), map('m', 1), TIMESTAMP'2024-01-01 10:00:00.5'),
                       (2, 'b', NULL, NULL, array(), map(), NULL), (3, NULL, -2.25BD, named_struct('city', NULL, 'zip', 30), NULL, NULL, NULL)"""),
    added("facts", "INSERT INTO {facts} (id, name) VALUES (4, 'd'), (5, 'e')",
          "SELECT id, name, NULL, NULL, NULL, NULL, NULL FROM VALUES (4, 'd'), (5, 'e') AS v(id, name)"),
    added("facts", "INSERT INTO {facts} BY NAME SELECT 'f' AS name, 6 AS id, array('z') AS tags",
          "SELECT 6, 'f', NULL, NULL, array('z'), NULL, NULL"),
    added("facts", "INSERT INTO TABLE {facts} SELECT id + 100, name, amount, place, tags, scores, at FROM {facts} WHERE id < 3",
          "SELECT id + 100, name, amount, place, tags, scores, at FROM {m} WHERE id < 3"),
    added("facts", "INSERT INTO {facts} WITH w AS (SELECT max(id) AS top FROM {facts}) SELECT top + 1, 'cte', 0, NULL, NULL, NULL, NULL FROM w",
          "SELECT max(id) + 1, 'cte', 0, NULL, NULL, NULL, NULL FROM {m}"),
    added("facts", "INSERT INTO {facts} (id, place) SELECT 7, named_struct('city', 'Oslo', 'zip', id) FROM range(2)",
          "SELECT 7, NULL, NULL, named_struct('city', 'Oslo', 'zip', CAST(id AS INT)), NULL, NULL, NULL FROM range(2)"),
    added("facts", "INSERT INTO {facts} (id) SELECT id FROM range(20, 40)",
          "SELECT CAST(id AS INT), NULL, NULL, NULL, NULL, NULL, NULL FROM range(20, 40)"),
    values("days", """(1, 'a', 1.5D, DATE'2024-01-01', 'eu'), (2, 'b', 2.5D, DATE'2024-01-01', 'us'), (3, 'c', NULL, DATE'2024-01-02', 'eu'),
                      (4, 'd', -0.5D, NULL, 'eu'), (5, 'e', 5D, DATE'2024-01-02', NULL), (6, 'f', 6D, DATE'2024-01-03', 'a b/ü=\\'1')"""),
    added("days", "INSERT INTO {days} PARTITION (day = '2024-01-05', region = 'eu') VALUES (10, 'j', 1D), (11, 'k', 2D)",
          "SELECT *, DATE'2024-01-05', 'eu' FROM VALUES (10, 'j', 1D), (11, 'k', 2D)"),
    added("days", "INSERT INTO {days} PARTITION (day = DATE'2024-01-06', region) SELECT id, name, amount, region FROM {days} WHERE id < 4",
          "SELECT id, name, amount, DATE'2024-01-06', region FROM {m} WHERE id < 4"),
    added("days", "INSERT INTO {days} (id, day, region) VALUES (12, DATE'2024-01-07', 'us')",
          "SELECT 12, NULL, NULL, DATE'2024-01-07', 'us'"),
    added("days", "INSERT INTO {days} (region, id, name, day) SELECT 'asia', CAST(id AS INT), concat('n', id), DATE'2024-02-01' + CAST(id % 3 AS INT) FROM range(50, 59)",
          "SELECT CAST(id AS INT), concat('n', id), NULL, DATE'2024-02-01' + CAST(id % 3 AS INT), 'asia' FROM range(50, 59)"),
    added("days", "INSERT INTO {days} PARTITION (region = 'pole') BY NAME SELECT 13 AS id, DATE'2024-01-08' AS day",
          "SELECT 13, NULL, NULL, DATE'2024-01-08', 'pole'"),
    added("spread", "INSERT INTO {spread} SELECT id, concat('n', id), id % 2 = 0, CAST(id % 3 AS INT) FROM range(30)",
          "SELECT id, concat('n', id), id % 2 = 0, CAST(id % 3 AS INT) FROM range(30)"),
    added("spread", "INSERT INTO {spread} SELECT /*+ REPARTITION(5) */ id, NULL, NULL, NULL FROM range(30, 40)",
          "SELECT id, NULL, NULL, NULL FROM range(30, 40)"),
    added("spread", "INSERT INTO {spread} PARTITION (k = 7) SELECT id, 'seven', true FROM range(100, 105)",
          "SELECT id, 'seven', true, 7 FROM range(100, 105)"),
    added("spread", "INSERT INTO {spread} SELECT d.id, d.name, true, 9 FROM {days} d JOIN {facts} f ON d.id = f.id WHERE d.region = 'eu'",
          "SELECT d.id, d.name, true, 9 FROM {m_days} d JOIN {m_facts} f ON d.id = f.id WHERE d.region = 'eu'"),
    # UPDATE
    updated("facts", "name = upper(name)", "id <= 2"),
    updated("facts", "name = concat(coalesce(name, '?'), '!'); amount = coalesce(amount, 0) + 1", "id IN (3, 4, 5)"),
    Change("facts", "UPDATE {facts} SET place.zip = place.zip + 1 WHERE place.city = 'Rome'",
           """SELECT id, name, amount, IF(place.city = 'Rome', named_struct('city', place.city, 'zip', place.zip + 1), place) AS place,
              tags, scores, at FROM {m}"""),
    updated("facts", "tags = array_append(tags, 'new')", "tags IS NOT NULL AND size(tags) > 0"),
    updated("facts", "scores = map('a', id, 'b', NULL)", "id BETWEEN 20 AND 22"),
    updated("facts", "at = TIMESTAMP'1969-12-31 23:59:58.999999'", "at IS NOT NULL"),
    Change("facts", "UPDATE {facts} AS f SET f.name = (SELECT max(name) FROM {days}) WHERE f.id IN (SELECT id FROM {days} WHERE region = 'us')",
           """SELECT id, IF(id IN (SELECT id FROM {m_days} WHERE region = 'us'), (SELECT max(name) FROM {m_days}), name) AS name, amount, place,
              tags, scores, at FROM {m}"""),
    Change("facts", "UPDATE {facts} f SET name = 'exists' WHERE EXISTS (SELECT 1 FROM {days} d WHERE d.id = f.id AND d.day = DATE'2024-01-02')",
           """SELECT id, IF(EXISTS (SELECT 1 FROM {m_days} d WHERE d.id = f.id AND d.day = DATE'2024-01-02'), 'exists', name) AS name, amount, place,
              tags, scores, at FROM {m} f"""),
    updated("facts", "amount = 99999999.99", "id = 38"),
    updated("facts", "name = name", "false"),
    updated("days", "name = 'null day'", "day IS NULL"),
    updated("days", "amount = amount * 2", "day >= DATE'2024-01-02' AND region = 'eu'"),
    updated("days", "name = concat(name, region)", "region <=> NULL OR region LIKE 'a%'"),
    updated("days", "amount = 0", "true"),
    updated("spread", "name = 'low'", "id < 5"),
    updated("spread", "seen = NOT seen; name = concat(name, '+')", "k = 1"),
    updated("spread", "seen = true", "k IS NULL AND id % 4 = 0"),
    # DELETE
    kept("facts", "DELETE FROM {facts} WHERE id = 5", "NOT (id = 5)"),
    kept("facts", "DELETE FROM {facts} WHERE name IS NULL AND id > 30", "NOT (name IS NULL AND id > 30)"),
    kept("facts", "DELETE FROM {facts} f WHERE f.place.zip = 30", "NOT (place.zip <=> 30)"),
    kept("facts", "DELETE FROM {facts} WHERE array_contains(tags, 'z')", "NOT coalesce(array_contains(tags, 'z'), false)"),
    kept("facts", "DELETE FROM {facts} WHERE id NOT IN (SELECT id FROM {days} WHERE id IS NOT NULL) AND id > 100",
         "NOT (id NOT IN (SELECT id FROM {m_days} WHERE id IS NOT NULL) AND id > 100)"),
    kept("facts", "DELETE FROM {facts} WHERE false", "true"),
    kept("days", "DELETE FROM {days} WHERE day = DATE'2024-01-05'", "NOT (day <=> DATE'2024-01-05')"),
    kept("days", "DELETE FROM {days} WHERE region IS NULL", "region IS NOT NULL"),
    kept("days", "DELETE FROM {days} WHERE day IN (DATE'2024-02-01', DATE'2024-02-02') AND id % 2 = 1",
         "NOT (day <=> DATE'2024-02-01' OR day <=> DATE'2024-02-02') OR id % 2 <> 1"),
    kept("spread", "DELETE FROM {spread} WHERE id % 7 = 3", "id % 7 <> 3"),
    kept("spread", "DELETE FROM {spread} WHERE k IS NULL AND id > 35", "NOT (k IS NULL AND id > 35)"),
    # MERGE
    Change("facts", """MERGE INTO {facts} t USING (SELECT 1 AS id, 'merged' AS name UNION ALL SELECT 200, 'fresh') s ON t.id = s.id
                       WHEN MATCHED THEN UPDATE SET name = s.name WHEN NOT MATCHED THEN INSERT (id, name) VALUES (s.id, s.name)""",
           """SELECT id, IF(id = 1, 'merged', name) AS name, amount, place, tags, scores, at FROM {m}
              UNION ALL SELECT 200, 'fresh', NULL, NULL, NULL, NULL, NULL"""),
    Change("facts", "MERGE INTO {facts} t USING {facts} s ON t.id = s.id AND s.id = 2 WHEN MATCHED THEN UPDATE SET *",
           "SELECT * FROM {m}"),
    Change("facts", "MERGE INTO {facts} t USING (SELECT 20 AS id UNION ALL SELECT 21) s ON t.id = s.id WHEN MATCHED AND t.id = 20 THEN DELETE "
           "WHEN MATCHED THEN UPDATE SET t.place = named_struct('city', 'merged', 'zip', s.id)",
           """SELECT id, name, amount, IF(id = 21, named_struct('city', 'merged', 'zip', 21), place) AS place, tags, scores, at FROM {m}
              WHERE id <> 20"""),
    Change("facts", "MERGE INTO {facts} t USING (SELECT 4 AS id) s ON t.id = s.id WHEN NOT MATCHED BY SOURCE AND t.id = 6 THEN DELETE "
           "WHEN NOT MATCHED BY SOURCE AND t.id = 7 THEN UPDATE SET name = 'unmatched'",
           "SELECT id, IF(id = 7, 'unmatched', name) AS name, amount, place, tags, scores, at FROM {m} WHERE id <> 6"),
    Change("facts", "MERGE INTO {facts} t USING (SELECT * FROM {facts} WHERE false) s ON t.id = s.id WHEN MATCHED THEN DELETE", "SELECT * FROM {m}"),
    Change("days", """MERGE INTO {days} t USING (SELECT 12 AS id, 'late' AS name, 1D AS amount, DATE'2024-01-07' AS day, 'us' AS region
                      UNION ALL SELECT 77, 'new', 2D, DATE'2024-03-01', 'moon') s ON t.id = s.id AND t.day = s.day
                      WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *""",
           """SELECT id, IF(id = 12, 'late', name) AS name, IF(id = 12, 1D, amount) AS amount, day, region FROM {m}
              UNION ALL SELECT 77, 'new', 2D, DATE'2024-03-01', 'moon'"""),
    Change("days", """MERGE INTO {days} t USING (SELECT DISTINCT day FROM {days} WHERE region = 'asia') s ON t.day = s.day AND t.id > 55
                      WHEN MATCHED THEN DELETE""",
           "SELECT * FROM {m} WHERE NOT (id > 55 AND region = 'asia')"),
    Change("spread", """MERGE INTO {spread} t USING (SELECT id, 'm' AS name FROM range(25, 32)) s ON t.id = s.id
                        WHEN MATCHED AND t.k = 0 THEN DELETE WHEN MATCHED THEN UPDATE SET name = concat(s.name, t.id)
                        WHEN NOT MATCHED THEN INSERT (id, name, k) VALUES (s.id, s.name, 0)""",
           """SELECT id, IF(id BETWEEN 25 AND 31, concat('m', id), name) AS name, seen, k FROM {m} WHERE NOT (id BETWEEN 25 AND 31 AND k <=> 0)
              UNION ALL SELECT id, 'm', NULL, 0 FROM range(25, 32) WHERE id NOT IN (SELECT id FROM {m})"""),
    # INSERT OVERWRITE, as Hive's, and TRUNCATE
    Change("days", "INSERT OVERWRITE {days} PARTITION (day = '2024-01-03', region = 'eu') SELECT 80, 'o', 8D",
           "SELECT * FROM {m} WHERE NOT (day <=> DATE'2024-01-03' AND region <=> 'eu') UNION ALL SELECT 80, 'o', 8D, DATE'2024-01-03', 'eu'"),
    Change("days", "INSERT OVERWRITE {days} PARTITION (day = '2024-01-06', region) SELECT 81, 'p', 8D, 'us'",
           "SELECT * FROM {m} WHERE NOT (day <=> DATE'2024-01-06' AND region <=> 'us') UNION ALL SELECT 81, 'p', 8D, DATE'2024-01-06', 'us'"),
    Change("days", "INSERT OVERWRITE {days} SELECT 82, 'q', 8D, DATE'2024-03-01', 'moon'",
           "SELECT * FROM {m} WHERE NOT (day <=> DATE'2024-03-01' AND region <=> 'moon') UNION ALL SELECT 82, 'q', 8D, DATE'2024-03-01', 'moon'"),
    Change("days", "INSERT OVERWRITE {days} PARTITION (day = '2024-01-06', region = 'us') SELECT 1, '', 0D WHERE false",
           "SELECT * FROM {m} WHERE NOT (day <=> DATE'2024-01-06' AND region <=> 'us')"),
    kept("days", "TRUNCATE TABLE {days} PARTITION (day = '2024-03-01', region = 'moon')", "NOT (day <=> DATE'2024-03-01' AND region <=> 'moon')"),
    kept("days", "TRUNCATE TABLE {days} PARTITION (day = '2024-01-01')", "NOT (day <=> DATE'2024-01-01')"),
    kept("days", "ALTER TABLE {days} DROP PARTITION (day = '2024-01-06', region = 'eu')", "NOT (day <=> DATE'2024-01-06' AND region <=> 'eu')"),
    Change("days", "ALTER TABLE {days} PARTITION (day = '2024-01-07', region = 'us') RENAME TO PARTITION (day = '2024-01-17', region = 'usa')",
           """SELECT id, name, amount, IF(day <=> DATE'2024-01-07' AND region <=> 'us', DATE'2024-01-17', day) AS day,
              IF(day <=> DATE'2024-01-07' AND region <=> 'us', 'usa', region) AS region FROM {m}"""),
    updated("days", "name = 'renamed'", "region = 'usa'"),
    kept("spread", "TRUNCATE TABLE {spread} PARTITION (k = 7)", "NOT (k <=> 7)"),
    added("spread", "INSERT INTO {spread} PARTITION (k = 7) VALUES (1000, 'again', true)", "SELECT 1000, 'again', true, 7"),
    Change("facts", "INSERT OVERWRITE {facts} SELECT * FROM {facts} WHERE id < 100", "SELECT * FROM {m} WHERE id < 100"),
    # several INSERTs, partitions by a condition, another table in its place
    Change("facts", """FROM (SELECT id FROM {facts} WHERE id < 4) s INSERT INTO {facts} (id, name) SELECT id + 300, 'one'
                       INSERT INTO {facts} (id, name) SELECT id + 400, 'two' WHERE id > 1""",
           """SELECT * FROM {m} UNION ALL SELECT id + 300, 'one', NULL, NULL, NULL, NULL, NULL FROM {m} WHERE id < 4
              UNION ALL SELECT id + 400, 'two', NULL, NULL, NULL, NULL, NULL FROM {m} WHERE id IN (2, 3)"""),
    Change("days", "INSERT INTO {days} REPLACE WHERE day = DATE'2024-01-17' AND region = 'usa' SELECT 83, 'r', 8D, DATE'2024-01-17', 'usa'",
           "SELECT * FROM {m} WHERE NOT (day <=> DATE'2024-01-17' AND region <=> 'usa') UNION ALL SELECT 83, 'r', 8D, DATE'2024-01-17', 'usa'"),
    kept("facts", "CREATE OR REPLACE TABLE {facts} AS SELECT * FROM {facts} WHERE id < 400", "id < 400"),
    Change("days", "CREATE OR REPLACE TABLE {days} PARTITIONED BY (day, region) AS SELECT id + 1 AS id, name, amount, day, region FROM {days}",
           "SELECT id + 1, name, amount, day, region FROM {m}"),
)

FIRST = {change.table: change.sql for change in reversed(CHANGES)}
"""The statement with which the rows of each table begin."""

QUERIES = (
    "SELECT * FROM {facts}",
    "SELECT count(*), count(name), count(DISTINCT name), sum(amount), min(id), max(at) FROM {facts}",
    "SELECT id, place.city, place.zip + 1 FROM {facts} WHERE place.city IS NOT NULL",
    "SELECT id, tag FROM {facts} LATERAL VIEW explode(tags) e AS tag",
    "SELECT id, posexplode_outer(tags) FROM {facts}",
    "SELECT id, scores['a'], map_keys(scores), size(scores) FROM {facts}",
    "SELECT id FROM {facts} WHERE array_contains(tags, 'new') OR name LIKE '%!'",
    "SELECT id, date_trunc('DAY', at), extract(YEAR FROM at) FROM {facts} WHERE at < TIMESTAMP'2000-01-01 00:00:00'",
    "SELECT to_json(place), to_json(tags), to_json(scores) FROM {facts}",
    "SELECT name, count(*) AS n FROM {facts} GROUP BY name HAVING count(*) > 1 ORDER BY name",
    "SELECT place.city, sum(amount) FROM {facts} GROUP BY place.city WITH ROLLUP",
    "SELECT id, row_number() OVER (PARTITION BY name ORDER BY id) FROM {facts}",
    "SELECT id, lag(id) OVER (ORDER BY id), sum(amount) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM {facts}",
    "SELECT * FROM {facts} ORDER BY id DESC LIMIT 3",
    "SELECT id FROM {facts} ORDER BY id LIMIT 3 OFFSET 2",
    "SELECT DISTINCT name FROM {facts}",
    "SELECT CASE WHEN amount > 0 THEN 'plus' WHEN amount IS NULL THEN 'none' ELSE 'minus' END AS sign, count(*) FROM {facts} GROUP BY 1",
    "SELECT id FROM {facts} WHERE id = (SELECT max(id) FROM {days})",
    "SELECT id FROM {facts} WHERE id > (SELECT min(id) FROM {days})",
    "SELECT f.id, d.name FROM {facts} f JOIN {days} d ON f.id = d.id",
    "SELECT f.id, d.name FROM {facts} f LEFT JOIN {days} d USING (id)",
    "SELECT f.id, d.id FROM {facts} f FULL OUTER JOIN {days} d ON f.id = d.id AND d.region = 'eu'",
    "SELECT id FROM {facts} LEFT SEMI JOIN {days} USING (id)",
    "SELECT id FROM {facts} LEFT ANTI JOIN {days} USING (id)",
    "SELECT a.id, b.id FROM {facts} a CROSS JOIN {facts} b WHERE a.id < b.id AND b.id < 8",
    "SELECT id FROM {facts} UNION SELECT id FROM {days} UNION SELECT CAST(id AS INT) FROM {spread}",
    "SELECT id FROM {facts} INTERSECT SELECT id FROM {days}",
    "SELECT id FROM {days} EXCEPT SELECT id FROM {facts}",
    "SELECT id FROM {facts} MINUS ALL SELECT CAST(id AS INT) FROM {spread}",
    "WITH eu AS (SELECT * FROM {days} WHERE region = 'eu') SELECT a.id, b.id FROM eu a JOIN eu b ON a.day = b.day AND a.id < b.id",
    "SELECT * FROM (SELECT id, region, amount FROM {days}) PIVOT (sum(amount) FOR region IN ('eu', 'us'))",
    "SELECT * FROM (SELECT id, CAST(amount AS STRING) AS a, name AS b FROM {days}) UNPIVOT (v FOR c IN (a, b))",
    "SELECT * FROM {days} WHERE day = DATE'2024-01-02'",
    "SELECT * FROM {days} WHERE day BETWEEN DATE'2024-01-02' AND DATE'2024-02-01' AND region IN ('eu', 'asia')",
    "SELECT * FROM {days} WHERE day IS NULL",
    "SELECT * FROM {days} WHERE NOT (region = 'eu')",
    "SELECT * FROM {days} WHERE year(day) = 2024 AND month(day) = 2",
    "SELECT * FROM {days} WHERE region = 'a b/ü=\\'1'",
    "SELECT * FROM {days} WHERE day > DATE'2024-01-02' OR id = 1",
    "SELECT day, region, count(*), sum(amount) FROM {days} GROUP BY day, region",
    "SELECT day, region, grouping_id(), count(*) FROM {days} GROUP BY CUBE (day, region)",
    "SELECT max(day), min(region), count(day) FROM {days}",
    "SELECT count(*) FROM {days} WHERE day = DATE'2030-01-01'",
    "SELECT d.* FROM {days} d JOIN (SELECT DATE'2024-01-02' AS day) p ON d.day = p.day",
    "SELECT id FROM {days} WHERE (day, region) IN (SELECT DATE'2024-01-02', 'eu')",
    "SELECT region, first_value(name) OVER (PARTITION BY region ORDER BY day, id) FROM {days}",
    "SELECT * FROM {spread} WHERE id = 12",
    "SELECT * FROM {spread} WHERE k = 2 AND id > 10",
    "SELECT k, count(*), count_if(seen) FROM {spread} GROUP BY k",
    "SELECT a.id, b.name FROM {spread} a JOIN {spread} b ON a.id = b.id AND a.k = b.k",
    "SELECT k, max(id % 3) FROM {spread} GROUP BY k",
    "SELECT name FROM {spread} TABLESAMPLE (100 PERCENT)",
    "SELECT /*+ BROADCAST(d) */ s.id FROM {spread} s JOIN {days} d ON s.id = d.id",
    "SELECT id, name FROM {spread} WHERE name IN ('low', 'seven', 'n20+') OR seen IS NULL",
    # a sum of doubles depends on the order of its rows
    "SELECT percentile(id, 0.5), round(stddev(id), 9), approx_count_distinct(id) > 0 FROM {spread}",
    "FROM {spread} SELECT id WHERE k = 9",
    "FROM {days} |> WHERE region = 'eu' |> AGGREGATE count(*) AS n GROUP BY day",
    "SELECT inline(array(struct(1, 'a'))) FROM {facts} WHERE id = 1",
    "SELECT id FROM {facts} WHERE id IN (SELECT s.id FROM {spread} s WHERE s.k IN (SELECT CAST(d.id AS INT) FROM {days} d))",
    "SELECT id, (SELECT count(*) FROM {days} d WHERE d.id = f.id) FROM {facts} f",
    "SELECT transform(tags, t -> concat(t, id)) FROM {facts} WHERE tags IS NOT NULL",
    "SELECT * FROM VALUES (1), (2) AS v(id) WHERE id IN (SELECT id FROM {facts})",
    "TABLE {spread}",
)

DEFINITIONS = (
    Definition("ALTER TABLE {t} ADD COLUMNS (extra BIGINT COMMENT 'more', deep STRUCT<a: INT>)", "SELECT * FROM {t}"),
    Definition("INSERT INTO {t} (id, extra, day, region) VALUES (90, 1, DATE'2024-01-09', 'eu')", "SELECT id, extra, deep, day FROM {t}"),
    Definition("ALTER TABLE {t} ADD PARTITION (day = '2024-05-01', region = 'eu')", "SHOW PARTITIONS {t}"),
    Definition("ALTER TABLE {t} ADD IF NOT EXISTS PARTITION (day = '2024-05-01', region = 'eu')", "SHOW PARTITIONS {t}"),
    Definition("ALTER TABLE {t} ADD PARTITION (day = '2024-05-02', region = 'eu') PARTITION (day = '2024-05-02', region = 'us')", "SHOW PARTITIONS {t}"),
    Definition("ALTER TABLE {t} DROP PARTITION (day = '2024-05-02', region = 'us')", "SHOW PARTITIONS {t} PARTITION (day = '2024-05-02')"),
    Definition("ALTER TABLE {t} DROP IF EXISTS PARTITION (day = '2030-05-02', region = 'us')", "SHOW PARTITIONS {t}"),
    Definition("ALTER TABLE {t} PARTITION (day = '2024-05-01', region = 'eu') RENAME TO PARTITION (day = '2024-06-01', region = 'eu')", "SHOW PARTITIONS {t}"),
    Definition("INSERT INTO {t} PARTITION (day = '2024-06-01', region = 'eu') (id) VALUES (91)", "SELECT id FROM {t} WHERE day = DATE'2024-06-01'"),
    Definition("TRUNCATE TABLE {t} PARTITION (day = '2024-06-01')", "SELECT id FROM {t}"),
    Definition("ALTER TABLE {t} DROP PARTITION (day = '2024-06-01', region = 'eu') PURGE", "SHOW PARTITIONS {t}"),
    Definition("COMMENT ON TABLE {t} IS 'all of it'", "SELECT count(*) FROM {t}"),
    Definition("ALTER TABLE {t} SET TBLPROPERTIES ('mine' = 'yes', 'other' = '1')", "SHOW TBLPROPERTIES {t} ('mine')"),
    Definition("ALTER TABLE {t} UNSET TBLPROPERTIES IF EXISTS ('other', 'never')", "SELECT count(*) FROM {t}"),
    Definition("TRUNCATE TABLE {t}", "SELECT count(*) FROM {t}"),
)

MISTAKES = (
    # names and types
    Mistake("SELECT nothing FROM {facts}", "UNRESOLVED_COLUMN.WITH_SUGGESTION", ("nothing",)),
    Mistake("SELECT place.street FROM {facts}", "FIELD_NOT_FOUND", ("street", "city")),
    Mistake("SELECT * FROM {db}.nowhere", "TABLE_OR_VIEW_NOT_FOUND", ("nowhere",)),
    Mistake("SELEC 1", "PARSE_SYNTAX_ERROR", ("SELEC",)),
    Mistake("SELECT id FROM {facts} GROUP BY name", "MISSING_AGGREGATION", ("id",)),
    Mistake("SELECT f.id FROM {facts} f JOIN {days} d ON f.id = d.id WHERE name = ''", "AMBIGUOUS_REFERENCE", ("name",)),
    Mistake("SELECT sum(tags) FROM {facts}", "DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE", ("tags",)),
    Mistake("SELECT * FROM {facts} VERSION AS OF 'x'", "INVALID_VERSION", ("facts", "write id")),
    Mistake("SELECT * FROM {facts} VERSION AS OF 999999", "InvalidOperationError", ("999999",)),
    # INSERT
    Mistake("INSERT INTO {facts} VALUES (1, 'x')", "INSERT_COLUMN_ARITY_MISMATCH.NOT_ENOUGH_DATA_COLUMNS", ("facts",)),
    Mistake("INSERT INTO {days} VALUES (1, 'x', 1D, DATE'2024-01-01', 'eu', 1)", "INSERT_COLUMN_ARITY_MISMATCH.TOO_MANY_DATA_COLUMNS", ("days",)),
    Mistake("INSERT INTO {facts} (id, nothing) VALUES (1, 2)", "UNRESOLVED_COLUMN.WITH_SUGGESTION", ("nothing",)),
    Mistake("INSERT INTO {facts} (id, id) VALUES (1, 2)", "COLUMN_ALREADY_EXISTS", ("id",)),
    Mistake("INSERT INTO {facts} (id) VALUES (array(1))", "INCOMPATIBLE_DATA_FOR_TABLE.CANNOT_SAFELY_CAST", ("facts", "id")),
    Mistake("INSERT INTO {facts} (place) VALUES (named_struct('city', 'x'))", "INCOMPATIBLE_DATA_FOR_TABLE.CANNOT_FIND_DATA", ("facts", "place")),
    Mistake("INSERT INTO {facts} BY NAME SELECT 1 AS nothing", "INCOMPATIBLE_DATA_FOR_TABLE.EXTRA_COLUMNS", ("nothing",)),
    Mistake("INSERT INTO {days} PARTITION (hour = 1) VALUES (1, 'x', 1D, DATE'2024-01-01', 'eu')", "NON_PARTITION_COLUMN", ("hour",)),
    Mistake("INSERT INTO {days} PARTITION (id = 1) VALUES ('x', 1D, DATE'2024-01-01', 'eu')", "NON_PARTITION_COLUMN", ("id",)),
    Mistake("INSERT INTO {facts} PARTITION (id = 1) SELECT 1", "NON_PARTITION_COLUMN", ("id",)),
    Mistake("INSERT INTO {facts} (id) SELECT raise_error('this row')", "USER_RAISED_EXCEPTION", ("this row",)),
    Mistake("INSERT INTO {days} (id, day, region) VALUES (1, 'no day', 'eu')", "INCOMPATIBLE_DATA_FOR_TABLE.CANNOT_SAFELY_CAST", ("days", "day")),
    # UPDATE, DELETE, MERGE
    Mistake("UPDATE {facts} SET nothing = 1", "UNRESOLVED_COLUMN.WITH_SUGGESTION", ("nothing",)),
    Mistake("UPDATE {facts} SET id = 'x', id = 1", "DATATYPE_MISMATCH.INVALID_ROW_LEVEL_OPERATION_ASSIGNMENTS", ("id",)),
    Mistake("UPDATE {days} SET region = 'us' WHERE id = 1", "InvalidOperationError", ("Partition column region", "days", "delete the row and insert")),
    Mistake("UPDATE {spread} SET id = 1", "InvalidOperationError", ("Bucketing column id", "spread", "delete the row and insert")),
    Mistake("UPDATE {facts} SET ROW__ID = NULL", "InvalidOperationError", ("Hidden column ROW__ID", "facts", "Leave it out of SET")),
    Mistake("UPDATE {facts} f SET name = 'x', f.row__id.rowid = 1", "InvalidOperationError", ("Hidden column f.row__id.rowid", "facts")),
    Mistake("MERGE INTO {facts} t USING (SELECT 1 AS id) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET t.ROW__ID = NULL",
            "InvalidOperationError", ("Hidden column t.ROW__ID", "facts")),
    Mistake("INSERT INTO {facts} (id, ROW__ID) VALUES (1, NULL)", "INCOMPATIBLE_DATA_FOR_TABLE.EXTRA_COLUMNS", ("ROW__ID", "facts")),
    Mistake("UPDATE {facts} SET id = 1 WHERE nothing = 1", "UNRESOLVED_COLUMN.WITH_SUGGESTION", ("nothing",)),
    Mistake("DELETE FROM {facts} WHERE nothing = 1", "UNRESOLVED_COLUMN.WITH_SUGGESTION", ("nothing",)),
    Mistake("DELETE FROM {db}.nowhere", "TABLE_OR_VIEW_NOT_FOUND", ("nowhere",)),
    Mistake("DELETE FROM {facts} WHERE id", "DATATYPE_MISMATCH.FILTER_NOT_BOOLEAN", ("id",)),
    # definitions
    Mistake("CREATE TABLE {facts} (id INT) " + ACID, "TABLE_OR_VIEW_ALREADY_EXISTS", ("facts",)),
    Mistake("CREATE TABLE {db}.fresh (id INT, ID INT) " + ACID, "COLUMN_ALREADY_EXISTS", ("id",)),
    Mistake("CREATE TABLE {db}.fresh (id INT) PARTITIONED BY (nothing) " + ACID, "_LEGACY_ERROR_TEMP_3060", ("nothing",)),
    Mistake("ALTER TABLE {facts} DROP COLUMN nothing", "UNRESOLVED_COLUMN.WITH_SUGGESTION", ("nothing",)),
    Mistake("ALTER TABLE {facts} ADD COLUMN id INT", "FIELD_ALREADY_EXISTS", ("id",)),
    Mistake("ALTER TABLE {facts} RENAME COLUMN name TO label", "InvalidOperationError", ("facts", "name", "ADD COLUMNS")),
    Mistake("ALTER TABLE {facts} ALTER COLUMN id TYPE STRING", "InvalidOperationError", ("id", "string")),
    Mistake("ALTER TABLE {spread} DROP COLUMN id", "InvalidOperationError", ("id", "buckets", "spread")),
    Mistake("ALTER TABLE {facts} SET LOCATION '/elsewhere'", "UNSUPPORTED", ("location", "facts")),
    Mistake("ALTER TABLE {facts} SET TBLPROPERTIES ('transactional'='false')", "MetaError", ("transactional",)),
    Mistake("ALTER TABLE {days} ADD PARTITION (day = '2024-01-02')", "_LEGACY_ERROR_TEMP_1232", ("days", "region")),
    Mistake("ALTER TABLE {days} ADD PARTITION (day = '2024-01-02', region = 'eu')", "PARTITIONS_ALREADY_EXIST", ("days", "eu")),
    Mistake("ALTER TABLE {days} DROP PARTITION (day = '2030-01-01', region = 'eu')", "PARTITIONS_NOT_FOUND", ("days", "eu")),
    Mistake("ALTER TABLE {days} PARTITION (day = '2030-01-01', region = 'eu') RENAME TO PARTITION (day = '2030-01-02', region = 'eu')",
            "PARTITIONS_NOT_FOUND", ("days", "eu")),
    Mistake("TRUNCATE TABLE {days} PARTITION (day = '2030-01-01', region = 'eu')", "PARTITIONS_NOT_FOUND", ("days",)),
    Mistake("TRUNCATE TABLE {days} PARTITION (hour = 1)", "PARTITIONS_NOT_FOUND", ("hour",)),
    Mistake("SHOW PARTITIONS {facts}", "INVALID_PARTITION_OPERATION.PARTITION_SCHEMA_IS_EMPTY", ("facts",)),
    Mistake("DROP TABLE {db}.nowhere", "TABLE_OR_VIEW_NOT_FOUND", ("nowhere",)),
    Mistake("ANALYZE TABLE {days} PARTITION (day = '2024-01-02') COMPUTE STATISTICS", "UNSUPPORTED", ("days", "leave out PARTITION")),
    Mistake("CREATE OR REPLACE TABLE {facts} USING parquet AS SELECT 1 AS id", "InvalidOperationError", ("facts", "another format", "DROP TABLE and CREATE TABLE")),
    Mistake("REPLACE TABLE {days} (id INT, name STRING) PARTITIONED BY (name)", "InvalidOperationError", ("days", "other partition keys")),
    Mistake("INSERT INTO {days} REPLACE WHERE id = 1 SELECT 1, 'x', 1D, DATE'2024-01-01', 'eu'", "InvalidOperationError", ("days", "REPLACE WHERE key = value")),
    Mistake("MSCK REPAIR TABLE {days}", "NOT_SUPPORTED_COMMAND_FOR_V2_TABLE", ("MSCK REPAIR TABLE",)),
    Mistake("LOAD DATA INPATH '/nowhere' INTO TABLE {facts}", "NOT_SUPPORTED_COMMAND_FOR_V2_TABLE", ("LOAD DATA",)),
)
