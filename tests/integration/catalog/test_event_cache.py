"""A cache of the catalog that lives on events alone, by the rules that Impala's documents give, equals the catalog.

It creates, replaces and removes what an event names; a rename removes the old name. Changes of its own it has made already
when their events come: it knows them by the two parameters that it has put into them, and skips them. A table that an event
puts in place again begins without partitions, which are told on their own.
"""

import random

import pytest

from metastore.client import MetastoreClient
from metastore.thrift_gen.hive_metastore import ttypes as T
from tests.support.catalog_events import decoded, events, last_id

CHANGES = 2000
SERVICE, VERSION = "impala.events.catalogServiceId", "impala.events.catalogVersion"
DATABASES = [f"d{number}" for number in range(3)]
TABLES = [f"t{number}" for number in range(6)]
VALUES = ["1", "2 ä", "x/y=z", "__HIVE_DEFAULT_PARTITION__"]
REFUSALS = (T.AlreadyExistsException, T.NoSuchObjectException, T.InvalidOperationException, T.InvalidObjectException, T.MetaException)


class Cache:
    """What is known of the catalog; ``skipped``: the number of events of changes of its own."""

    def __init__(self):
        self.databases, self.tables, self.partitions = {}, {}, {}
        self.own, self.skipped, self.last = set(), 0, 0

    def follow(self, client, most):
        """Read the next events."""
        for event in events(client, self.last, maxEvents=most):
            assert event.eventId == self.last + 1
            self.last = event.eventId
            message = decoded(event)
            if not self._is_own(event.eventType, message):
                getattr(self, event.eventType.lower())(event, message)

    def _is_own(self, kind, message):
        changed = message.get("tableObjAfter") or message.get("tableObj") if kind in {"CREATE_TABLE", "ALTER_TABLE"} else None
        mark = None if changed is None else (changed.parameters.get(SERVICE), changed.parameters.get(VERSION))
        if mark not in self.own:
            return False
        self.own.remove(mark)  # the parameters stay when others change the table
        self.skipped += 1
        return True

    def create_database(self, event, message):
        self.databases[event.dbName] = message["db"]

    def alter_database(self, event, message):
        self.databases[event.dbName] = message["dbObjAfter"]

    def drop_database(self, event, message):
        del self.databases[event.dbName]

    def put(self, table):
        self.tables[table.dbName, table.tableName] = table
        self.partitions.setdefault((table.dbName, table.tableName), {})

    def create_table(self, event, message):
        self.put(message["tableObj"])

    def alter_table(self, event, message):
        self.change(message["tableObjBefore"], message["tableObjAfter"])

    def change(self, before, after):
        old, new = (before.dbName, before.tableName), (after.dbName, after.tableName)
        if old != new:
            del self.tables[old]
            self.partitions[new] = {}
            for values, one in self.partitions.pop(old).items():
                one.dbName, one.tableName = new
                if one.sd.location.startswith(f"{before.sd.location}/"):
                    one.sd.location = after.sd.location + one.sd.location.removeprefix(before.sd.location)
                self.partitions[new][values] = one
        self.put(after)

    def drop_table(self, event, message):
        del self.tables[event.dbName, event.tableName]
        del self.partitions[event.dbName, event.tableName]

    def add_partition(self, event, message):
        held = self.partitions[event.dbName, event.tableName]
        held.update({tuple(one.values): one for one in message["partitionList"]})

    def drop_partition(self, event, message):
        held = self.partitions[event.dbName, event.tableName]
        for one in message["partitions"]:
            del held[tuple(one.values())]

    def alter_partition(self, event, message):
        held = self.partitions[event.dbName, event.tableName]
        before, after = message["partitionObjBefore"], message["partitionObjAfter"]
        assert held.pop(tuple(before.values)) is not None
        held[tuple(after.values)] = after

    def insert(self, event, message):
        """Files are read anew; there are none here."""


class Changes:
    """Random changes, some of them refused, some of them the cache's own."""

    def __init__(self, client, cache, seed):
        self.client, self.cache, self.dice, self.number = client, cache, random.Random(seed), 0
        self.there = []

    def one(self):
        self.number += 1
        if self.number % 25 == 1:
            self.there = [(db, name) for db in self.client.get_all_databases() for name in self.client.get_all_tables(db)]
        kinds = [*[self.create_database] * 3, self.alter_database, self.drop_database, *[self.create_table] * 6, *[self.alter_table] * 6,
                 *[self.drop_table] * 2, *[self.rename] * 2, *[self.add] * 8, *[self.alter_partitions] * 4, *[self.drop_partitions] * 4,
                 self.rename_partition, self.truncate, self.report]
        try:
            self.dice.choice(kinds)()
        except REFUSALS:
            return 0
        return 1

    def any_name(self):
        return self.dice.choice(DATABASES), self.dice.choice(TABLES)

    def name(self):
        """Return a table that was there a while ago, most of the time."""
        return self.dice.choice(self.there) if self.there and self.dice.random() < 0.9 else self.any_name()

    def table(self, **parameters):
        db, name = self.any_name()
        sd = T.StorageDescriptor(cols=[T.FieldSchema(f"c{self.dice.randrange(3)}", "int", "ä")], inputFormat="i", outputFormat="o",
                                 serdeInfo=T.SerDeInfo("", "s", {}))
        return T.Table(tableName=name, dbName=db, sd=sd, tableType="EXTERNAL_TABLE", partitionKeys=[
            T.FieldSchema("k", "string", None)], parameters={"EXTERNAL": "TRUE", "n": str(self.number), **parameters})

    def part(self, name, value):
        sd = T.StorageDescriptor(cols=[T.FieldSchema("c", "int", None)], serdeInfo=T.SerDeInfo("", "s", {}))
        return T.Partition([value], *name, sd=sd, parameters={"n": str(self.number)})

    def some(self):
        return self.dice.sample(VALUES, self.dice.randrange(1, 4))

    def create_database(self):
        self.client.create_database(T.Database(name=self.dice.choice(DATABASES), parameters={"n": str(self.number)}))

    def alter_database(self):
        name = self.dice.choice(DATABASES)
        self.client.alter_database(name, T.Database(name=name, parameters={"n": str(self.number)}, ownerName="o", ownerType=1))

    def drop_database(self):
        self.client.drop_database(self.dice.choice(DATABASES), True, self.dice.random() < 0.5)

    def marks(self):
        """Return the parameters of a change of the cache's own, or none for a change of another's."""
        if self.dice.random() < 0.6:
            return {}
        self.cache.own.add(("me", str(self.number)))
        return {SERVICE: "me", VERSION: str(self.number)}

    def own(self, marks, change):
        """Make a change; the cache makes its own at once, when it has read all that was before it."""
        if marks:
            self.cache.follow(self.client, None)
        change()

    def create_table(self):
        marks = self.marks()
        table = self.table(**marks)
        self.own(marks, lambda: self.client.create_table(table))
        if marks:
            self.cache.put(self.client.get_table(table.dbName, table.tableName))

    def alter_table(self):
        marks = self.marks()
        before = self.client.get_table(*self.name())
        after = self.client.get_table(before.dbName, before.tableName)
        after.parameters = {**before.parameters, "n": str(self.number), **marks}
        self.own(marks, lambda: self.client.alter_table(before.dbName, before.tableName, after))
        if marks:
            self.cache.change(before, self.client.get_table(before.dbName, before.tableName))

    def rename(self):
        table = self.client.get_table(*self.name())
        old = table.dbName, table.tableName
        table.dbName, table.tableName = self.any_name()
        table.parameters.pop(SERVICE, None)
        self.client.alter_table(*old, table)

    def drop_table(self):
        self.client.drop_table(*self.name(), True)

    def add(self):
        name = self.name()
        self.client.add_partitions_req(T.AddPartitionsRequest(*name, [self.part(name, value) for value in self.some()], True))

    def alter_partitions(self):
        name = self.name()
        self.client.alter_partitions(*name, [self.part(name, value) for value in self.some()])

    def drop_partitions(self):
        keys = [f"k={value.replace('/', '%2F').replace('=', '%3D')}" for value in self.some()]
        self.client.drop_partitions_req(T.DropPartitionsRequest(
            *self.name(), T.RequestPartsSpec(names=keys), deleteData=True, ifExists=self.dice.random() < 0.8))

    def rename_partition(self):
        name, (old, new) = self.name(), self.dice.sample(VALUES, 2)
        self.client.rename_partition(*name, [old], self.part(name, new))

    def truncate(self):
        self.client.truncate_table(*self.name(), None)

    def report(self):
        name = self.name()
        self.client.get_table(*name)
        data = T.FireEventRequestData(insertData=T.InsertEventRequestData(False, ["s3://b/f"]))
        self.client.fire_listener_event(T.FireEventRequest(True, data, *name))


def of_catalog(client):
    """Return the content of the catalog, in the cache's shape."""
    databases = {name: client.get_database(name) for name in client.get_all_databases() if name != "default"}
    tables = {(db, name): client.get_table(db, name) for db in databases for name in client.get_all_tables(db)}
    partitions = {name: {tuple(one.values): one for one in client.get_partitions(*name, -1)} for name in tables}
    return databases, tables, partitions


@pytest.mark.parametrize("seed", [1])
def test_a_cache_that_lives_on_events_equals_the_catalog(server, client, seed):
    cache = Cache()
    changes = Changes(client, cache, seed)
    done = 0
    with MetastoreClient(server.thrift_uri) as reader:
        while done < CHANGES:
            done += changes.one()
            if changes.number % 40 == 0:
                cache.follow(reader, changes.dice.choice([None, 1, 7, 100]))
        cache.follow(reader, None)

        assert cache.last == last_id(reader)
        databases, tables, partitions = of_catalog(client)
    assert cache.databases == databases
    assert cache.tables == tables
    assert cache.partitions == partitions
    assert cache.skipped > CHANGES / 40
    assert min(map(len, (databases, tables))) > 0
