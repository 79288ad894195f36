"""Hive's words around constraints, each given to the constraint that it stands behind."""

import pytest

from metastore.catalog.model import ConstraintKind
from metastore.client.declared_constraints import Declaration
from metastore.errors import InvalidOperationError
from metastore.spark.sql.alterations import definitions
from metastore.spark.sql.constraint_syntax import declarations, without_words
from metastore.spark.sql.parsing import hives_own
from metastore.spark.sql.statements import AddConstraints, DropConstraint, TableRef

NN, DEFAULT, CHECK, PK, UQ, FK = (
    ConstraintKind.NOT_NULL,
    ConstraintKind.DEFAULT,
    ConstraintKind.CHECK,
    ConstraintKind.PRIMARY_KEY,
    ConstraintKind.UNIQUE,
    ConstraintKind.FOREIGN_KEY,
)


def declared(columns):
    plain, words = without_words(f"CREATE TABLE t ({columns})")
    return declarations(definitions(plain), words)


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ("a INT NOT NULL", Declaration(NN, None, ("a",))),
        ("a INT NOT NULL ENABLE NOVALIDATE RELY COMMENT 'x'", Declaration(NN, None, ("a",))),
        ("a INT NOT NULL NORELY", Declaration(NN, None, ("a",), is_relied_on=False)),
        ("a INT CONSTRAINT N not null disable", Declaration(NN, "n", ("a",), is_enabled=False, is_relied_on=False)),
        ("a INT NOT NULL NOT ENFORCED RELY", Declaration(NN, None, ("a",), is_enabled=False)),
        (
            "a DECIMAL(10, 2) DEFAULT cast(1 AS DECIMAL(10, 2)) ENABLE",
            Declaration(DEFAULT, None, ("a",), "CAST(1 AS DECIMAL(10, 2))"),
        ),
        ("a INT CHECK (a IS NOT NULL AND a > 0) ENABLE", Declaration(CHECK, None, ("a",), "NOT a IS NULL AND a > 0")),
        ("enable INT, b INT, CONSTRAINT c CHECK (enable < b)", Declaration(CHECK, "c", (), "enable < b")),
        (
            "a INT, b INT, PRIMARY KEY (b, a) DISABLE NOVALIDATE RELY",
            Declaration(PK, None, ("b", "a"), is_enabled=False),
        ),
        ("a INT PRIMARY KEY DISABLE", Declaration(PK, None, ("a",), is_enabled=False, is_relied_on=False)),
        ("a INT UNIQUE DISABLE", Declaration(UQ, None, ("a",), is_enabled=False, is_relied_on=False)),
        ("a INT, CONSTRAINT u UNIQUE (a)", Declaration(UQ, "u", ("a",), is_enabled=False, is_relied_on=False)),
        (
            "a INT, CONSTRAINT f FOREIGN KEY (a) REFERENCES d.p (x) DISABLE",
            Declaration(FK, "f", ("a",), None, ("d", "p"), ("x",), is_enabled=False, is_relied_on=False),
        ),
        (
            "a INT REFERENCES p (x) DISABLE",
            Declaration(FK, None, ("a",), None, (None, "p"), ("x",), is_enabled=False, is_relied_on=False),
        ),
    ],
)
def test_one_constraint(columns, expected):
    assert declared(columns) == (expected,)


def test_a_column_may_be_called_like_a_word():
    assert declared("a INT NOT NULL, disable INT") == (Declaration(NN, None, ("a",)),)


def test_words_belong_to_the_constraint_before_them():
    assert [
        (one.columns, one.is_enabled)
        for one in declared("a INT NOT NULL DISABLE DEFAULT 1 ENABLE, b INT NOT NULL, c INT DEFAULT 2 DISABLE")
    ] == [(("a",), False), (("a",), True), (("b",), True), (("c",), False)]


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        ("a INT PRIMARY KEY ENABLE", "keys are not enforced"),
        ("a INT NOT NULL ENABLE VALIDATE", "NOVALIDATE"),
        ("a INT, FOREIGN KEY (a) REFERENCES p", "as many columns"),
        ("a INT GENERATED ALWAYS AS IDENTITY", "not a constraint|cannot be understood"),
    ],
)
def test_refused(columns, reason):
    with pytest.raises(InvalidOperationError, match=reason):
        declared(columns)


def test_alter_table():
    check = Declaration(CHECK, "c", (), "a > 0")
    assert hives_own("ALTER TABLE d.t ADD CONSTRAINT c CHECK (a > 0) ENABLE NOVALIDATE;") == AddConstraints(
        TableRef("d", "t"), (check,)
    )
    assert hives_own("alter table t change a a int not null") == AddConstraints(
        TableRef(None, "t"), (Declaration(NN, None, ("a",)),), ("a", "int")
    )
    assert hives_own("ALTER TABLE t DROP CONSTRAINT `C`") == DropConstraint(TableRef(None, "t"), "c")
    assert hives_own("ALTER TABLE t CHANGE COLUMN a b BIGINT COMMENT 'not null'") is None
    with pytest.raises(InvalidOperationError, match="rename the column first"):
        hives_own("ALTER TABLE t CHANGE a b INT NOT NULL")


def test_what_follows_the_columns_is_left_alone():
    text = "CREATE TABLE t (a INT) COMMENT 'x NOT NULL ENABLE' TBLPROPERTIES ('transactional'='true')"
    assert without_words(text) == (text, [])
