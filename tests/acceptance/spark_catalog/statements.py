"""Statements of Spark's SQL over ACID tables, and what they must do: data alone, for whichever client runs them.

{facts} is nested, {days} partitioned, {spread} partitioned and bucketed. A definition is run on a table of each kind,
and ``probe`` must show the same of both. A mistake says what it is refused with: Spark's own condition, or one of ours,
and the words that the sentence must have.
"""

from typing import NamedTuple

TABLES = {
    "facts": """(id INT, name STRING, amount DECIMAL(10,2), place STRUCT<city: STRING, zip: INT>, tags ARRAY<STRING>,
                 scores MAP<STRING, INT>, at TIMESTAMP)""",
    "days": "(id INT, name STRING, amount DOUBLE) PARTITIONED BY (day DATE, region STRING)",
    "spread": "(id BIGINT, name STRING, seen BOOLEAN) PARTITIONED BY (k INT) CLUSTERED BY (id) INTO 3 BUCKETS",
}
ACID = "STORED AS ORC TBLPROPERTIES ('transactional'='true')"


class Definition(NamedTuple):
    """A statement that defines something of {t}; ``probe``: a query that shows it."""

    sql: str
    probe: str


class Mistake(NamedTuple):
    """A statement that is refused; ``condition``: the error's class; ``said``: words of its message."""

    sql: str
    condition: str
    said: tuple[str, ...]


ROWS = (
    """INSERT INTO {facts} VALUES (1, 'a', 1.50BD, named_struct('city', 'Rome', 'zip', 10), array('x', 'y'), map('m', 1), TIMESTAMP'2024-01-01 10:00:00.5'),
                       (2, 'b', NULL, NULL, array(), map(), NULL), (3, NULL, -2.25BD, named_struct('city', NULL, 'zip', 30), NULL, NULL, NULL)""",
    """INSERT INTO {days} VALUES (1, 'a', 1.5D, DATE'2024-01-01', 'eu'), (2, 'b', 2.5D, DATE'2024-01-01', 'us'), (3, 'c', NULL, DATE'2024-01-02', 'eu'),
                      (4, 'd', -0.5D, NULL, 'eu'), (5, 'e', 5D, DATE'2024-01-02', NULL), (6, 'f', 6D, DATE'2024-01-03', 'a b/ü=\\'1')""",
    "INSERT INTO {spread} SELECT id, concat('n', id), id % 2 = 0, CAST(id % 3 AS INT) FROM range(30)",
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
    Mistake("UPDATE {facts} SET id = 1 WHERE nothing = 1", "UNRESOLVED_COLUMN.WITH_SUGGESTION", ("nothing",)),
    Mistake("DELETE FROM {facts} WHERE nothing = 1", "UNRESOLVED_COLUMN.WITH_SUGGESTION", ("nothing",)),
    Mistake("DELETE FROM {db}.nowhere", "TABLE_OR_VIEW_NOT_FOUND", ("nowhere",)),
    Mistake("DELETE FROM {facts} WHERE id", "DATATYPE_MISMATCH.FILTER_NOT_BOOLEAN", ("id",)),
    # definitions
    Mistake("CREATE TABLE {facts} (id INT) " + ACID, "TABLE_OR_VIEW_ALREADY_EXISTS", ("facts",)),
    Mistake("CREATE TABLE {db}.fresh (id INT, ID INT) " + ACID, "COLUMN_ALREADY_EXISTS", ("id",)),
    Mistake("CREATE TABLE {db}.fresh (id INT) PARTITIONED BY (nothing) " + ACID, "_LEGACY_ERROR_TEMP_3060", ("nothing",)),
    Mistake("CREATE OR REPLACE TABLE {facts} " + ACID + " AS SELECT 1 AS id", "UNSUPPORTED", ("facts", "INSERT OVERWRITE")),
    Mistake("REPLACE TABLE {facts} (id INT) " + ACID, "UNSUPPORTED", ("facts", "DROP TABLE")),
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
    Mistake("ANALYZE TABLE {facts} COMPUTE STATISTICS", "NOT_SUPPORTED_COMMAND_FOR_V2_TABLE", ("ANALYZE TABLE",)),
    Mistake("MSCK REPAIR TABLE {days}", "NOT_SUPPORTED_COMMAND_FOR_V2_TABLE", ("MSCK REPAIR TABLE",)),
    Mistake("LOAD DATA INPATH '/nowhere' INTO TABLE {facts}", "NOT_SUPPORTED_COMMAND_FOR_V2_TABLE", ("LOAD DATA",)),
)
