"""What became of a change that the upstream was asked for."""

from datetime import UTC, datetime, timedelta

import pytest

from metastore.catalog.rules.upstream_changes import ChangeKind, Note, NoteVerdict, SeenUpstream, verdict
from metastore.ids import TableName

AT = datetime(2026, 1, 1, tzinfo=UTC)
TABLE = TableName("hive", "d", "t")


@pytest.mark.parametrize(("partition", "identity", "seen", "minutes", "expected"), [
    ("", 7, SeenUpstream(None), 0, NoteVerdict.HAPPENED),
    ("", 7, SeenUpstream(8), 0, NoteVerdict.HAPPENED),
    ("", 7, SeenUpstream(7), 0, NoteVerdict.WAIT),
    ("", 7, SeenUpstream(7), 11, NoteVerdict.DID_NOT_HAPPEN),
    ("", 0, SeenUpstream(8), 0, NoteVerdict.WAIT),
    ("", 0, SeenUpstream(None), 0, NoteVerdict.HAPPENED),
    ("p=1", 7, SeenUpstream(7, partition=True), 0, NoteVerdict.WAIT),
    ("p=1", 7, SeenUpstream(7, partition=True), 11, NoteVerdict.DID_NOT_HAPPEN),
    ("p=1", 7, SeenUpstream(7), 0, NoteVerdict.HAPPENED),
    ("p=1", 7, SeenUpstream(None), 0, NoteVerdict.HAPPENED),
])
def test_verdict(partition, identity, seen, minutes, expected):
    note = Note(ChangeKind.DROP_TABLE, TABLE, identity, 5, AT, partition)
    assert verdict(note, seen, AT + timedelta(minutes=minutes), timedelta(minutes=10)) is expected
