"""NOT NULL, DEFAULT and CHECK from SQL: every kind of write keeps them, or nothing of it is kept."""

import pytest
from pyspark.errors import PySparkException

from metastore.catalog.model import ConstraintKind
from metastore.client.constraints import add_constraints
from metastore.client.declared_constraints import Declaration
from metastore.errors import MetastoreError
from metastore.ids import table_name
from metastore.spark.txn.blocks import ConstraintViolationError

pytestmark = pytest.mark.spark
ACID = "STORED AS ORC TBLPROPERTIES ('transactional'='true')"


def rows(session, name):
    return sorted((tuple(row) for row in session.table(name).collect()), key=repr)


@pytest.fixture
def ruled(acid_session, db):
    """(1, 'new', 5): id is NOT NULL, name has a DEFAULT, amount is checked, and id < amount."""
    name = f"{db}.ruled"
    acid_session.sql(f"""CREATE TABLE {name} (id INT NOT NULL, name STRING DEFAULT 'new',
        amount INT CONSTRAINT amounts CHECK (amount > 0 AND amount < 100), PRIMARY KEY (id) NOT ENFORCED,
        CONSTRAINT pairs CHECK (id < amount) ENFORCED) {ACID}""")
    acid_session.sql(f"INSERT INTO {name} (id, amount) VALUES (1, 5)")
    return name


def test_what_is_left_out_has_its_default(acid_session, ruled, spark):
    acid_session.sql(f"INSERT INTO {ruled} VALUES (2, DEFAULT, 6), (3, NULL, 7)")
    acid_session.insert(ruled, spark.sql("SELECT 4 id, 8 amount"))
    acid_session.sql(f"MERGE INTO {ruled} t USING (SELECT 9 AS id) s ON t.id = s.id WHEN NOT MATCHED THEN INSERT (id, amount) "
                     "VALUES (s.id, 10)")
    assert rows(acid_session, ruled) == [(1, "new", 5), (2, "new", 6), (3, None, 7), (4, "new", 8), (9, "new", 10)]
    acid_session.sql(f"UPDATE {ruled} SET name = DEFAULT, amount = 50 WHERE id = 3")
    assert (3, "new", 50) in rows(acid_session, ruled)
    acid_session.overwrite(ruled, spark.sql("SELECT 4 id, 8 amount"))
    assert rows(acid_session, ruled) == [(4, "new", 8)]


def test_default_is_a_word_in_every_branch_of_a_merge_and_null_is_null(acid_session, ruled):
    acid_session.sql(f"INSERT INTO {ruled} VALUES (2, NULL, 6)")
    acid_session.sql(f"MERGE INTO {ruled} t USING (SELECT explode(array(2, 8, 9)) AS id) s ON t.id = s.id "
                     "WHEN MATCHED THEN UPDATE SET name = DEFAULT WHEN NOT MATCHED AND s.id = 8 THEN INSERT (id, name, amount) VALUES (s.id, DEFAULT, 50) "
                     "WHEN NOT MATCHED THEN INSERT (id, name, amount) VALUES (s.id, NULL, 50)")
    assert rows(acid_session, ruled) == [(1, "new", 5), (2, "new", 6), (8, "new", 50), (9, None, 50)]


def test_a_row_that_goes_has_no_rules_to_keep(acid_session, ruled):
    acid_session.sql(f"INSERT INTO {ruled} (id, amount) VALUES (2, 6)")
    acid_session.sql(f"MERGE INTO {ruled} t USING (SELECT 1 AS id UNION SELECT 2) s ON t.id = s.id WHEN MATCHED AND t.id = 1 "
                     "THEN DELETE WHEN MATCHED THEN UPDATE SET amount = 7")
    assert rows(acid_session, ruled) == [(2, "new", 7)]


BROKEN = [
    ("INSERT INTO {t} (id, amount) VALUES (NULL, 5), (NULL, 6), (2, 7)", r"NOT NULL \w+ \(id\) by 2 rows"),
    ("INSERT INTO {t} (name) VALUES ('x')", r"NOT NULL \w+ \(id\) by 1 row\."),
    ("INSERT OVERWRITE TABLE {t} SELECT 1, 'x', 200", r"CHECK amounts \(amount > 0 AND amount < 100\) by 1 row"),
    ("UPDATE {t} SET amount = 1 WHERE id = 1", r"CHECK pairs \(id < amount\) by 1 row"),
    (("MERGE INTO {t} t USING (SELECT 1 AS id UNION SELECT 2) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET amount = 0 "
     "WHEN NOT MATCHED THEN INSERT (id, amount) VALUES (NULL, NULL)"), r"NOT NULL \w+ \(id\) by 1 row; CHECK amounts .* by 1 row"),
]


def test_a_statement_that_breaks_a_rule_writes_nothing(acid_session, ruled, lakehouse):
    directory = lakehouse.warehouse / f"{ruled.split('.')[0]}.db" / "ruled"
    before = sorted(child.name for child in directory.iterdir())
    for statement, said in BROKEN:
        with pytest.raises(ConstraintViolationError, match=said):
            acid_session.sql(statement.format(t=ruled))
        assert rows(acid_session, ruled) == [(1, "new", 5)]
        assert sorted(child.name for child in directory.iterdir()) == before


def test_in_a_transaction_only_the_statement_is_undone(acid_session, ruled):
    with acid_session.transaction():
        acid_session.sql(f"INSERT INTO {ruled} VALUES (2, 'kept', 6)")
        with pytest.raises(ConstraintViolationError):
            acid_session.sql(f"UPDATE {ruled} SET amount = 0")
        assert rows(acid_session, ruled) == [(1, "new", 5), (2, "kept", 6)]
    assert rows(acid_session, ruled) == [(1, "new", 5), (2, "kept", 6)]


def test_null_passes_a_check_and_no_rows_break_nothing(acid_session, ruled):
    acid_session.sql(f"INSERT INTO {ruled} VALUES (7, 'x', NULL)")
    acid_session.sql(f"INSERT INTO {ruled} SELECT * FROM {ruled} WHERE id > 100")
    acid_session.sql(f"UPDATE {ruled} SET amount = 0 WHERE id > 100")
    assert len(rows(acid_session, ruled)) == 2


def test_constraints_come_and_go(acid_session, db):
    name = f"{db}.later"
    acid_session.sql(f"CREATE TABLE {name} (id INT, v INT) PARTITIONED BY (p STRING) {ACID}")
    acid_session.sql(f"ALTER TABLE {name} ADD CONSTRAINT small CHECK (v < 10 OR p = 'big')")
    acid_session.sql(f"ALTER TABLE {name} ALTER COLUMN id SET NOT NULL")
    acid_session.sql(f"ALTER TABLE {name} ALTER COLUMN v SET DEFAULT 2")
    acid_session.sql(f"ALTER TABLE {name} ALTER COLUMN v SET DEFAULT 3")
    acid_session.sql(f"ALTER TABLE {name} ADD CONSTRAINT pk PRIMARY KEY (id) NOT ENFORCED RELY")
    acid_session.sql(f"INSERT INTO {name} PARTITION (p='big') VALUES (1, 50)")
    acid_session.sql(f"INSERT INTO {name} (id, p) VALUES (2, 'x')")
    with pytest.raises(ConstraintViolationError, match=r"NOT NULL \w+ \(id\) .*CHECK small"):
        acid_session.sql(f"INSERT INTO {name} VALUES (NULL, 10, 'x')")
    types = acid_session.client.types
    [key] = acid_session.client.get_primary_keys(types.PrimaryKeysRequest(db, "later")).primaryKeys
    assert (key.pk_name, key.enable_cstr, key.validate_cstr, key.rely_cstr) == ("pk", False, False, True)

    acid_session.sql(f"ALTER TABLE {name} ALTER COLUMN id DROP NOT NULL")
    acid_session.sql(f"ALTER TABLE {name} ALTER COLUMN v DROP DEFAULT")
    acid_session.sql(f"ALTER TABLE {name} DROP CONSTRAINT small")
    acid_session.sql(f"INSERT INTO {name} VALUES (NULL, 10, 'x')")
    acid_session.sql(f"INSERT INTO {name} (id, p) VALUES (3, 'x')")
    assert rows(acid_session, name) == [(1, 50, "big"), (2, 3, "x"), (3, None, "x"), (None, 10, "x")]


def test_insert_only_tables_keep_them_too(acid_session, db):
    name = f"{db}.appended"
    acid_session.sql(f"CREATE TABLE {name} (id INT NOT NULL, v INT, w INT) STORED AS PARQUET "
                     "TBLPROPERTIES ('transactional'='true', 'transactional_properties'='insert_only')")
    off = {"is_enabled": False, "is_relied_on": False}  # which Hive may declare
    add_constraints(acid_session.client, table_name(db, "appended"), [
        Declaration(ConstraintKind.DEFAULT, None, ("v",), "1", **off), Declaration(ConstraintKind.NOT_NULL, None, ("w",), **off)])
    with pytest.raises(ConstraintViolationError, match="by 1 row"):
        acid_session.sql(f"INSERT INTO {name} VALUES (NULL, 1, 1)")
    acid_session.sql(f"INSERT INTO {name} (id) VALUES (1)")
    assert rows(acid_session, name) == [(1, None, None)]


REFUSED = [
    ("ALTER TABLE {t} ADD CONSTRAINT c CHECK (nothing > 0)", "nothing"),
    ("ALTER TABLE {t} ADD CONSTRAINT c CHECK (rand() > 0)", "(?i)deterministic"),
    ("ALTER TABLE {t} ADD CONSTRAINT c CHECK (id + 1)", "(?i)type"),
    ("ALTER TABLE {t} ADD CONSTRAINT pairs CHECK (id > 0)", "already exists"),
    ("ALTER TABLE {t} ADD CONSTRAINT u UNIQUE (id) ENFORCED", "UNSUPPORTED_CONSTRAINT_CHARACTERISTIC"),
    ("ALTER TABLE {t} ALTER COLUMN amount SET DEFAULT 'many'", "INVALID_DEFAULT_VALUE"),
    ("ALTER TABLE {t} ALTER COLUMN name SET DEFAULT reflect('java.lang.System', 'exit', '1')", "reflect"),
    ("ALTER TABLE {t} ALTER COLUMN amount SET NOT NULL, name COMMENT 'x'", "by a statement of their own"),
    ("ALTER TABLE {t} DROP CONSTRAINT nothing", "does not exist"),
]


def test_what_cannot_be_declared_is_refused_with_the_reason(acid_session, ruled):
    for statement, reason in REFUSED:
        with pytest.raises((MetastoreError, PySparkException), match=reason):
            acid_session.sql(statement.format(t=ruled))
    acid_session.sql(f"INSERT INTO {ruled} (id, amount) VALUES (2, 6)")
    assert rows(acid_session, ruled) == [(1, "new", 5), (2, "new", 6)]


def test_spark_itself_still_sees_the_table(spark, acid_session, ruled):
    shown = {row[0]: row[1] for row in acid_session.sql(f"DESCRIBE EXTENDED {ruled}").collect()}
    assert (shown["id"], shown["name"], shown["amount"]) == ("int", "string", "int")
    assert acid_session.sql(f"SHOW TBLPROPERTIES {ruled}").count() > 0
