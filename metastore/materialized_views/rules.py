"""Staleness of a materialized view: the checks of its snapshot (TXN-45). Pure."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from metastore.acid.snapshots import NO_OPEN, TxnWriteIds, ValidWriteIdList
from metastore.errors import InvalidInputError, NoAnswerError
from metastore.ids import TableName, full_table_name


class Since(NamedTuple):
    """The write ids of a table that a view does not contain: all above ``high_watermark``, and the ``invalid`` ones."""

    name: TableName
    high_watermark: int
    invalid: Sequence[int]


class Staleness(NamedTuple):
    """The changes of the source tables of a view."""

    updated_or_deleted: bool
    compacted: bool


def stored_snapshot(text: str | None) -> TxnWriteIds:
    """Return the snapshot in a view's creation metadata: the lists as text, bare or inside of the JSON that 4.x writes.

    Raises: NoAnswerError if it is an Iceberg snapshot, or none at all; InvalidInputError.
    """
    bare = (text or "").strip()
    if bare.startswith("{"):
        document = _document(bare)
        if document.get("tableSnapshots"):
            raise NoAnswerError("the materialized view was made from snapshots of other table formats")
        bare = str(document.get("validTxnList") or "")
    if not bare:
        raise NoAnswerError("the materialized view has no snapshot")
    return TxnWriteIds.parse(bare)


def _document(text: str) -> dict[str, Any]:
    try:
        document = json.loads(text)
    except ValueError:
        raise InvalidInputError(f"Cannot read the snapshot {text[:200]!r} of a materialized view: no JSON") from None
    return dict(document)


def changes_since(stored: TxnWriteIds, current: Mapping[TableName, ValidWriteIdList]) -> list[Since]:
    """Return the write ids to check for changes.

    Raises: NoAnswerError if a table is unknown to the view, or its writers changed.
    """
    by_name = {full_table_name(table.table): table for table in stored.tables}
    unknown = sorted(current.keys() - by_name)
    if unknown:
        raise NoAnswerError(f"the materialized view has no snapshot of {unknown[0]}")
    changes = []
    for name, now in current.items():
        then = by_name[name]
        if (then.min_open_write_id or NO_OPEN) != (now.min_open_write_id or NO_OPEN):
            raise NoAnswerError(f"a write to {name} that was open has ended, or another one has begun")
        changes.append(Since(name, then.high_watermark, then.invalid))
    return changes
