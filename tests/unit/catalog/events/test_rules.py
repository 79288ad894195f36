"""Events beside what the integration tests make over Thrift: kinds that no call here makes, and limits."""

from dataclasses import replace

from metastore.catalog.events import rules
from metastore.catalog.events.rules import EventType
from metastore.catalog.model import Table
from metastore.catalog.rules.partitions import Partition
from metastore.ids import TableName
from metastore.thrift_server.convert.event_texts import EventTexts

TEXTS = EventTexts()
TABLE = Table(TableName("c", "d", "t"), {"cols": []}, partition_keys=[{"name": "k", "type": "string"}])


def partition(value):
    return Partition(f"k={value}", [value], None, None, {})


def test_a_connector_has_an_event_of_hives_type():
    [event] = rules.connector_changed(EventType.ALTER_CONNECTOR, "mysql")
    assert event == ("ALTER_DATACONNECTOR", "hive", None, None, {"connector": "mysql"})


def test_altered_partitions_of_one_event_are_some_thousand():
    pairs = [(partition("a"), partition("b"))] * (2 * rules.IN_ONE_MESSAGE + 1)
    events = rules.partitions_altered(TEXTS, TABLE, pairs, together=True)
    assert [len(event.message["partitions"]) for event in events] == [rules.IN_ONE_MESSAGE, rules.IN_ONE_MESSAGE, 1]


def test_nothing_that_was_changed_is_no_event():
    assert rules.partitions_added(TEXTS, TABLE, []) == rules.partitions_dropped(TEXTS, TABLE, []) == []


def test_files_for_replicas():
    [created] = rules.table_created(TEXTS, TABLE, ["f#1##"])
    assert created.message["files"] == ["f#1##"]
    [added] = rules.partitions_added(TEXTS, TABLE, [partition("a")], {"k=a": ["f"]})
    assert added.message["partitionFiles"] == [{"partitionName": "k=a", "files": ["f"]}]


def test_an_event_names_the_table_that_there_is_after_it():
    renamed = replace(TABLE, name=TableName("c", "e", "u"))
    [event] = rules.table_altered(TEXTS, TABLE, renamed)
    assert event[:4] == ("ALTER_TABLE", "c", "e", "u")
