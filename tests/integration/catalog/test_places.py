"""Who lies at a place or below it: what the indexes on locations answer, beside the plain comparison of all of them."""

from metastore.catalog.store import databases as database_store
from metastore.catalog.store import directory_changes, partitions
from metastore.catalog.store.directory_changes import Change

LONG = "file:/w/" + "l" * 600
PLACES = ("file:/w/t", "file:/w/t/", "file:/w/t/x", "file:/w/t-1", "file:/w/t0", "file:/w/t!", "file:/w", "file:/w/tä/ö",
          "file:/w/T", "file:/w/t/x/y", "file:/w/a_%", "file:/w/a_%/b", "file:/w/axyb", LONG, f"{LONG}/x", f"{LONG}x",
          f"{LONG[:499]}", f"{LONG[:499]}/z", f"{LONG[:500]}", f"{LONG[:500]}/z", f"{LONG[:498]}")  # fmt: skip


def fill(pg, tables):
    pg.sql("INSERT INTO catalogs (name, location) VALUES ('hive', 'file:/c') ON CONFLICT DO NOTHING")
    pg.sql("INSERT INTO databases (catalog, name, location, managed_location) VALUES ('hive', 'd', 'x:/', NULL)")
    for number, place in enumerate(tables):
        pg.sql("INSERT INTO tables (catalog, db, name, type, location, sd) VALUES ('hive', 'd', %s, 'T', %s, '{}')",
               (f"t{number}", place))  # fmt: skip


def is_at_or_below(place, source):
    return place == source or place.startswith(source + "/")


def test_every_kind_of_object_that_has_a_place_or_something_below_it(database):
    with database.begin() as pg:
        fill(pg, PLACES)
        for source in PLACES:
            users = directory_changes.select_users(pg, [Change(1, 0, source, None), Change(2, 0, "s3:/none", None)])
            [(_, who)] = users.items()
            assert is_at_or_below(PLACES[int(who.removeprefix("table d.t"))], source)
            assert database_store.is_location_used(pg, source)
        pg.sql("DELETE FROM tables WHERE location = %s", ("file:/w/axyb",))
        gone = [*(f"{place}/none" for place in PLACES), "file:/w/axy", "file:/w/b", "file:/w/axyb", LONG + "y"]
        assert directory_changes.select_users(pg, [Change(1, 0, source, None) for source in gone]) == {}
        assert not any(database_store.is_location_used(pg, source) for source in gone)
        pg.sql("DELETE FROM tables; UPDATE databases SET managed_location = 'file:/m/d'")
        assert directory_changes.select_users(pg, [Change(1, 0, "file:/m", None), Change(2, 0, "x:", None)]) == {
            "file:/m": "database d", "x:": "database d"}  # fmt: skip
        assert database_store.is_location_used(pg, "x:/")


def test_of_partitions_those_of_the_changes_own_table(database):
    with database.begin() as pg:
        fill(pg, ["file:/elsewhere", "file:/elsewhere"])
        [(first,), (second,)] = pg.sql("SELECT id FROM tables ORDER BY id")
        for place in PLACES:
            pg.sql("INSERT INTO partitions (table_id, name, \"values\", location) VALUES (%s, %s, '{}', %s)",
                   (first, place, place))  # fmt: skip
        for source in PLACES:
            users = directory_changes.select_users(pg, [Change(1, second, source, None), Change(2, first, source, None)])
            assert is_at_or_below(users[source].removeprefix("partition "), source)
            assert directory_changes.select_users(pg, [Change(1, second, source, None)]) == {}
        table = type("Table", (), {"id": first})
        wanted = [*PLACES, "file:/none", LONG + "y"]
        assert partitions.select_shared_locations(pg, table, wanted) == set(PLACES)
