"""Who lies at a place or below it: what the indexes on locations answer, beside the plain comparison of all of them."""

import pytest

from metastore.catalog.store import directory_changes, partitions
from metastore.compaction.queue.rules.requests import Entity
from metastore.compaction.queue.store.entities import OWN_CATALOG
from metastore.ids import TableName
from metastore.places.rules import Relation
from metastore.places.store import select_users

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


def assert_found(users, source, places):
    """Each user stands to the place as is said, and there is one wherever one should be."""
    assert {user.place for user in users} <= {source}
    for user in users:
        at, below = user.location.rstrip("/") == source.rstrip("/"), is_at_or_below(user.location, source.rstrip("/"))
        assert user.relation == (
            "at" if at and user.relation is not Relation.BELOW else "below" if below else "above"
        ), user
        assert is_at_or_below(user.location, source.rstrip("/")) or is_at_or_below(source, user.location.rstrip("/"))
    stored = [place for place in places if place == place.rstrip("/")]
    plain = source.rstrip("/")
    wanted = {
        Relation.AT: any(place == plain for place in stored),
        Relation.BELOW: any(place != plain and is_at_or_below(place, plain) for place in stored),
        Relation.ABOVE: any(place != plain and is_at_or_below(plain, place) for place in stored),
    }
    if f"{plain}/" in places:  # not as stored: what is first below it is the place itself
        del wanted[Relation.BELOW]
    found = {user.relation for user in users}
    assert {relation for relation, there in wanted.items() if there} <= found, (source, found)


def test_every_kind_of_object_that_has_a_place_or_something_below_it(database):
    with database.begin() as pg:
        fill(pg, PLACES)
        for source in PLACES:
            assert_found(select_users(pg, [source, "s3:/none"]), source, PLACES)
        pg.sql("DELETE FROM tables WHERE location = %s", ("file:/w/axyb",))
        gone = [*(f"{place}/none" for place in PLACES), "file:/w/axy", "file:/w/b", "file:/w/axyb", LONG + "y"]
        assert {user.relation for user in select_users(pg, gone)} == {Relation.ABOVE}
        pg.sql("DELETE FROM tables; UPDATE databases SET managed_location = 'file:/m/d'")
        assert {(user.place, user.name) for user in select_users(pg, ["file:/m", "x:", "x:/y"])} == {
            ("file:/m", "database d"), ("x:", "database d")}  # fmt: skip


def test_partitions_of_any_table(database):
    with database.begin() as pg:
        fill(pg, ["file:/elsewhere", "file:/elsewhere"])
        [(first,), _] = pg.sql("SELECT id FROM tables ORDER BY id")
        for place in PLACES:
            pg.sql("INSERT INTO partitions (table_id, name, \"values\", location) VALUES (%s, %s, '{}', %s)",
                   (first, place, place))  # fmt: skip
        for source in PLACES:
            assert_found(select_users(pg, [source, "file:/none"]), source, PLACES)
            assert_found(select_users(pg, [source], first, ()), source, PLACES)
            assert select_users(pg, [source], first) == []
            assert {user.location for user in select_users(pg, [source], first, [source])}.isdisjoint({source})
        table = type("Table", (), {"id": first})
        wanted = [*PLACES, "file:/none", LONG + "y"]
        assert partitions.select_shared_locations(pg, table, wanted) == set(PLACES)


@pytest.mark.parametrize("kind", ["tables", "partitions"])
def test_who_has_a_place_or_one_below_or_above_it(database, kind):
    """As the Cleaner asks before it removes what a drop has left."""
    with database.begin() as pg:
        fill(pg, [*PLACES[:2], LONG] if kind == "tables" else ["file:/elsewhere"])
        if kind == "partitions":
            pg.sql(
                "INSERT INTO partitions (table_id, name, \"values\", location) SELECT id, 'p=1', '{}', %s FROM tables",
                ("file:/w/t",),
            )
        has = [place.rstrip("/") for place in (PLACES[:1] if kind == "partitions" else [*PLACES[:2], LONG])]
        for source in (place.rstrip("/") for place in (*PLACES, "file:/w/t/x/y/z", "file:/none/t")):
            overlaps = any(is_at_or_below(place, source) or is_at_or_below(source, place) for place in has)
            assert bool(OWN_CATALOG.user_of(pg, source)) is overlaps, source
        pg.sql('UPDATE tables SET partition_keys = \'[{"name": "x"}]\'')  # whose partitions may lie in it
        of_table = Entity(TableName("hive", "d", "t0"), "x=1")
        assert bool(OWN_CATALOG.user_of(pg, "file:/w/t/x", of_table)) is (kind == "partitions")
        assert OWN_CATALOG.user_of(pg, "file:/w/t/x", of_table._replace(partition="")) is not None


def test_a_place_is_taken_while_a_change_is_at_it_above_it_or_below_it(database):
    known = [
        place for place in (*PLACES, "s3://b/x", "s3://b", "file:/w/t/x y") if not place.endswith("/")
    ]  # as stored
    with database.begin() as pg:

        def taken(change, wanted):
            pg.sql("DELETE FROM directory_changes")
            directory_changes.insert_removals(pg, "me", 1, change, kept=False)
            return directory_changes.select_taken(pg, wanted)

        for change in known[::3]:
            overlapping = [place for place in known if is_at_or_below(place, change) or is_at_or_below(change, place)]
            assert taken([change], known) == min(overlapping)
            for place in known:
                assert taken([change], [place]) == (place if place in overlapping else None)
            apart = [place for place in known if place not in overlapping]
            assert taken([change, "file:/none"], apart) is None

        pg.sql("DELETE FROM directory_changes")
        move = directory_changes.insert_move(pg, "me", 1, "file:/w/t", "file:/new/t", kept=False)
        for place in ("file:/w", "file:/w/t", "file:/w/t/x", "file:/new", "file:/new/t", "file:/new/t/x"):
            assert directory_changes.select_taken(pg, ["s3://b", place]) == place
            assert directory_changes.select_moving(pg, ["s3://b", place]) == place
        for phase, free in (("undone", "file:/w/t/x"), ("done", "file:/new/t/x")):
            pg.sql("UPDATE directory_changes SET phase = %s WHERE id = %s", (phase, move.id))
            assert directory_changes.select_taken(pg, [free]) is None
            assert directory_changes.select_moving(pg, [free]) is None


def test_thousands_of_changes_and_thousands_of_places_are_not_compared_one_by_one(database):
    changed, wanted = ([f"file:/w/t/day={n}/{name}" for n in range(300)] for name in ("a", "b"))
    with database.begin() as pg:
        directory_changes.insert_removals(pg, "me", 1, changed, kept=False)
        explained = Explained(pg)
        assert directory_changes.select_taken(explained, wanted) is None
        assert explained.compared < 10 * (len(changed) + len(wanted))
        assert directory_changes.select_taken(pg, [*wanted, changed[7]]) == changed[7]


class Explained:
    """Runs the last statement of what it is given, and counts the rows that it looked at."""

    def __init__(self, pg):
        self.pg, self.compared = pg, 0

    def sql(self, query, parameters):
        *_, last = query.split("; ")
        [(plan,)] = self.pg.sql(f"EXPLAIN (ANALYZE, FORMAT json) {last}", parameters)
        self._add(plan[0]["Plan"])
        return self.pg.sql(query, parameters)

    def _add(self, node):
        removed = node.get("Rows Removed by Join Filter", 0) + node.get("Rows Removed by Filter", 0)
        self.compared += (removed + node["Actual Rows"]) * node["Actual Loops"]
        for child in node.get("Plans", ()):
            self._add(child)
