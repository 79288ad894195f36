"""Who may be given a place, beside what others have: every case of the rule."""

import pytest

from metastore.places.rules import Relation, Taker, User, around, refused

TABLE = User("p", Relation.ABOVE, "table d.t", "l", True, False)
ACID = TABLE._replace(is_transactional=True)
DATABASE = TABLE._replace(name="database d", has_files=False)
CASES = {
    "a table inside a table": (Taker(has_files=True), [TABLE], "inside the directory of table d.t"),
    "a database inside a table": (Taker(), [TABLE], "inside the directory of table d.t"),
    "a table inside a database": (Taker(has_files=True, is_transactional=True), [DATABASE], None),
    "a table around a database": (Taker(has_files=True), [DATABASE._replace(relation=Relation.BELOW)], "nothing else may lie"),
    "a database around a table": (Taker(), [TABLE._replace(relation=Relation.BELOW)], None),
    "a plain table at a plain one": (Taker(has_files=True), [TABLE._replace(relation=Relation.AT)], None),
    "a plain table at a transactional one": (Taker(has_files=True), [ACID._replace(relation=Relation.AT)], "with nobody"),
    "a transactional table at a plain one": (Taker(has_files=True, is_transactional=True), [TABLE._replace(relation=Relation.AT)], "with nobody"),
    "nobody is there": (Taker(has_files=True, is_transactional=True), [], None),
    "one of many": (Taker(has_files=True), [DATABASE, TABLE._replace(relation=Relation.AT), TABLE], "inside"),
}  # fmt: skip


@pytest.mark.parametrize(("taker", "users", "words"), CASES.values(), ids=CASES)
def test_refused(taker, users, words):
    reason = refused(taker, users)
    assert (words is None and reason is None) or words in reason


@pytest.mark.parametrize(
    ("place", "directories"),
    [
        ("file:/w/t", ["file:/w/t", "file:/w", "file:", "file:/"]),
        ("s3://b/t/", ["s3://b/t", "s3://b", "s3:/", "s3:", "s3://b/"]),
        ("/w", ["/w", ""]),
    ],
)
def test_around(place, directories):
    assert around(place) == directories
