"""Spark's own Hive client gets transactional tables for one statement of ours, on whatever connection it has then."""

from types import SimpleNamespace

import pytest
from pyspark.errors import AnalysisException

from metastore.spark.jvm.hive_client import SparksHiveClient

KEY = "metastore.client.capability.check"


class Java:
    """What of Spark's JVM is in the way to Hive's client; notes what the metastore is told."""

    def __init__(self, kind="HiveExternalCatalog"):
        self.told, self.kind, self.made = [], kind, False

    def setMetaConf(self, key, value):
        self.told.append((key, value))

    def cachedHive(self):
        return self if self.made else None

    def databaseExists(self, _name):
        self.made = True

    def getSimpleName(self):
        return self.kind

    def __getattr__(self, _name):
        return lambda: self


@pytest.fixture
def java():
    return Java()


def sparks(java, checks="true"):
    return SparksHiveClient(SimpleNamespace(_jsparkSession=java), SimpleNamespace(getMetaConf=lambda _key: checks))


def test_the_check_is_off_for_the_statement_and_on_again(java):
    assert sparks(java).run(lambda: list(java.told)) == [(KEY, "false")]
    assert java.told == [(KEY, "false"), (KEY, "true")]


def test_it_is_on_again_after_a_failure(java):
    with pytest.raises(ZeroDivisionError):
        sparks(java).run(lambda: 1 / 0)
    assert java.told == [(KEY, "false"), (KEY, "true")]


def test_statements_side_by_side_share_it(java):
    sparks(java).run(lambda: sparks(java).run(lambda: None))
    assert java.told == [(KEY, "false"), (KEY, "true")]


@pytest.mark.parametrize(("kind", "checks"), [("InMemoryCatalog", "true"), ("HiveExternalCatalog", "false")])
def test_nothing_to_switch(kind, checks):
    java = Java(kind)
    assert sparks(java, checks).run(lambda: "done") == "done"
    assert java.told == []


def test_a_client_that_connected_anew_is_let_through_again(java):
    attempts = []

    def statement():
        attempts.append(len(java.told))
        if len(attempts) == 1:
            raise AnalysisException(f"refused, see {KEY}")
        return "done"

    assert sparks(java).run(statement) == "done"
    assert attempts == [1, 3]


def test_who_is_refused_twice_is_told(java):
    def statement():
        raise AnalysisException(f"refused, see {KEY}")

    with pytest.raises(AnalysisException, match="refused"):
        sparks(java).run(statement)
    with pytest.raises(AnalysisException, match="other"):
        sparks(java).run(lambda: (_ for _ in ()).throw(AnalysisException("other")))
    assert len(java.told) == 6
