"""Changes of a rare concept go one after the other, so that a rule may rest on what it did not find."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from metastore.catalog.rare.rules.schemas import METHODS
from metastore.catalog.rare.service import RareService
from metastore.config import RareSettings
from metastore.errors import AlreadyExistsError, NoSuchObjectError
from tests.support.thrift_server import until

NAME = {"catName": "hive", "dbName": "d", "schemaName": "s"}
SCHEMA = {"catName": "hive", "dbName": "d", "name": "s", "schemaType": 1, "compatibility": 1, "validationLevel": 1}
VERSION = {"schema": NAME, "version": 1, "cols": []}


@pytest.mark.parametrize(("before", "first", "second", "refused"), [
    ([], ("create_ischema", SCHEMA), ("create_ischema", SCHEMA), AlreadyExistsError),
    ([("create_ischema", SCHEMA)], ("drop_ischema", NAME), ("add_schema_version", VERSION), NoSuchObjectError)], ids=["create", "drop"])
def test_a_change_waits_for_the_one_before(d, database, before, first, second, refused):
    rare, decided, go_on = RareService(database, RareSettings()), threading.Event(), threading.Event()

    def run(name, request, method=None):
        return rare.run("schemas", method or METHODS[name], request)

    def slowly(work):
        outcome = METHODS[first[0]].rule(work)
        decided.set()
        assert go_on.wait(30)
        return outcome

    for call in before:
        run(*call)
    with ThreadPoolExecutor(2) as pool:
        one = pool.submit(run, *first, METHODS[first[0]]._replace(rule=slowly))
        assert decided.wait(30)
        other = pool.submit(run, *second)
        until(lambda: other.done() or database.once("SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"))
        go_on.set()

        assert one.result() is None
        with pytest.raises(refused):
            other.result()


def test_another_concept_does_not_wait(d, database):
    rare = RareService(database, RareSettings())
    add, request = METHODS["create_ischema"], {**SCHEMA, "name": "x"}

    def rule(work):
        with ThreadPoolExecutor(1) as pool:
            pool.submit(rare.run, "other", add, request).result(timeout=30)
        return METHODS["add_serde"].rule(work)

    rare.run("schemas", METHODS["add_serde"]._replace(rule=rule), {"name": "S"})
    assert rare.run("schemas", METHODS["get_ischema"], {**NAME, "schemaName": "x"})["name"] == "x"
