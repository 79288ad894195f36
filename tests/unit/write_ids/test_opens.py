"""Opens counted in a process: each once, and bounded."""

from metastore.ids import table_name
from metastore.write_ids import service
from metastore.write_ids.service import Opens

A, B, C = (table_name("db", name) for name in "abc")


def test_opens_are_counted_until_they_are_taken():
    counted = Opens()
    counted.add([A, B])
    counted.add([A])

    assert counted.taken() == {A: 2, B: 1}
    assert counted.taken() == {}


def test_no_more_tables_than_that_are_counted(monkeypatch):
    monkeypatch.setattr(service, "MOST_OPENED", 2)
    counted = Opens()
    counted.add([A, B, C, A])

    assert counted.taken() == {A: 2, B: 1}
