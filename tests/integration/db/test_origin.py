"""Another timeline, or another PostgreSQL, than the one that was served: taken over, or refused with what to do."""

import pytest

from metastore.cli.main import main
from metastore.db.origin import DatabaseOrigin, OtherOriginError, must_be_noted
from metastore.errors import UnavailableError

HERE = DatabaseOrigin("7", 2, is_synchronous=False)


@pytest.mark.parametrize(("noted", "answer"), [
    (None, True),
    (HERE, False),
    (HERE._replace(is_synchronous=True), True),
    (DatabaseOrigin("7", 1, is_synchronous=True), True),
], ids=["the first time", "as before", "no longer synchronous", "promoted, and had received everything"])
def test_used(noted, answer):
    assert must_be_noted(HERE, noted, 0) is answer


@pytest.mark.parametrize("noted", [
    DatabaseOrigin("7", 1, is_synchronous=False), DatabaseOrigin("6", 2, is_synchronous=False), DatabaseOrigin("6", 2, is_synchronous=True),
], ids=["promoted", "a copy in another PostgreSQL", "a copy of a synchronous one"])
def test_refused(noted):
    with pytest.raises(OtherOriginError, match="ids would be given out twice, so nothing is served.*metastore db restored"):
        must_be_noted(HERE, noted, 0)


def test_an_old_primary_and_a_standby_are_refused():
    with pytest.raises(OtherOriginError, match="old primary: it is on timeline 2.*on timeline 3"):
        must_be_noted(HERE, HERE, 3)
    with pytest.raises(UnavailableError, match="is a standby"):
        must_be_noted(HERE._replace(timeline=None), HERE, 0)


def noted(database):
    return database.once("SELECT system, timeline, is_synchronous FROM database_origin")


def test_each_new_connection_looks(database, database_url):
    [(system, timeline, _)] = noted(database)
    database.once("UPDATE database_origin SET timeline = %s", [timeline + 1])

    assert database.once("SELECT 1") == [(1,)]
    database.pool.close()
    with pytest.raises(OtherOriginError, match=f"on timeline {timeline + 1}, and is {system} on timeline {timeline}"):
        database.once("SELECT 1")
    for arguments in (["--nothing-lost"], []):
        main(["db", "restored", "--database-url", database_url, *arguments])
        assert noted(database) == [(system, timeline, False)]
        database.pool.close()


def test_a_synchronous_one_is_taken_over(database):
    [(system, timeline, _)] = noted(database)
    database.once("UPDATE database_origin SET timeline = %s, is_synchronous = true", [timeline + 1])
    database.pool.close()

    assert noted(database) == [(system, timeline, False)]
