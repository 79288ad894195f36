"""CREATE OR REPLACE TABLE of a transactional table: another definition and other rows by one commit.

Rule: the table keeps its identity, with its location, partition keys, buckets and format, so that its new rows are a
base over the old ones; a change that would need another table is refused. The definition changes right before the
commit, while the transaction keeps readers out; if the commit fails, the old definition comes back.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from typing import Any, NamedTuple

from metastore.acid_tables.column_changes import require_known
from metastore.acid_tables.serde_storage import HiveStorage
from metastore.acid_tables.table import AcidTable
from metastore.client import DomainClient, outcome
from metastore.client.client import AnswerLostError
from metastore.client.constraints import EnabledConstraints, has_constraints
from metastore.client.outcome import Fence
from metastore.errors import InvalidOperationError, MetastoreError, NoSuchTxnError
from metastore.ids import TableName
from metastore.planner.body import Body
from metastore.planner.call import Answer, PlannerCall
from metastore.planner.table_declarations import constraints, defined
from metastore.planner.tables import acid_table, described

_CHECK = "hive.metastore.disallow.incompatible.col.type.changes"
_NO_CONSTRAINTS = EnabledConstraints((), (), {})


class _Replaced(NamedTuple):
    """A table before and after, as the metastore's calls take it."""

    name: TableName
    before: Any
    after: Any


def replacement(call: PlannerCall) -> Answer:
    """Return the replaced table in the form of the call ``table``.

    Raises: InvalidOperationError: it is not possible.
    """
    replaced = _replaced(call, call.body)
    return described(AcidTable.of(replaced.name, replaced.after), replaced.after, _NO_CONSTRAINTS)


@contextmanager
def replacing(call: PlannerCall, definitions: Sequence[Body], txn_id: int) -> Iterator[None]:
    """Give tables their new definitions; restore the old ones if a commit inside the block fails.

    A repetition after a lost answer finds the transaction committed, and changes nothing.
    """
    if _is_committed(call.client, txn_id):
        yield
        return
    tables = [_replaced(call, body) for body in definitions]
    begun: list[_Replaced] = []
    is_sent = False
    try:
        for table in tables:
            begun.append(table)
            _alter(call.client, table.name, table.after)
        is_sent = True
        yield
    except MetastoreError as error:
        if not (is_sent and isinstance(error, AnswerLostError)):  # After a lost answer it may be committed.
            for table in begun:
                _alter(call.client, table.name, table.before)
        raise


def _is_committed(client: DomainClient, txn_id: int) -> bool:
    """Return True if the transaction is committed, and not open. Raises: TxnAbortedError, NoSuchTxnError, ..."""
    try:
        Fence(client, txn_id).require_open()
    except NoSuchTxnError as error:
        if outcome.is_committed(client, txn_id, error):
            return True
        raise
    return False


def _replaced(call: PlannerCall, body: Body) -> _Replaced:
    name = body.db_and_table()
    acid_table(call.client, name)
    before, wanted = call.client.get_table(name.db, name.table), defined(call, body)
    differences = _differences(before, wanted, is_format_said=body.has("format"))
    if differences:
        raise InvalidOperationError(
            f"{name} cannot be replaced by a table with {differences[0]}: only its columns, comment and properties can "
            "change while it stays the same table. DROP TABLE and CREATE TABLE, or repeat what the table has."
        )
    if constraints(body) or has_constraints(call.client, name):
        raise InvalidOperationError(
            f"{name} cannot be replaced with constraints: DROP CONSTRAINT those that it has, and ADD CONSTRAINT those "
            "that it shall have afterwards."
        )
    after = deepcopy(before)
    after.sd.cols, after.parameters = wanted.sd.cols, {**wanted.parameters, **_kind(before)}
    table = AcidTable.of(name, after)
    if isinstance(table.file_format, HiveStorage):
        table.file_format.require_storable(name)
    require_known([column.name for column in table.columns], table.bucket_columns)
    return _Replaced(name, before, after)


def _differences(before: Any, wanted: Any, *, is_format_said: bool) -> list[str]:
    """Return the differences of the definitions in the fields that make up a table's identity."""
    sd, other = before.sd, wanted.sd
    pairs: dict[str, list[Any]] = {
        "other partition keys": [
            [(key.name.lower(), key.type) for key in table.partitionKeys or ()] for table in (before, wanted)
        ],
        "other buckets": [_buckets(sd), _buckets(other)],
        "another format": [_format(sd), _format(other) if is_format_said else _format(sd)],
        "another location": [sd.location, (other.location or sd.location).rstrip("/")],
        "other transactional properties": [_kind(before), {**_kind(before), **_kind(wanted)}],
    }
    return [what for what, pair in pairs.items() if pair[0] != pair[1]]


def _buckets(sd: Any) -> tuple[Any, ...]:
    columns = [column.lower() for column in sd.bucketCols or ()]
    return (
        max(sd.numBuckets or 0, 0) if columns else 0,
        columns,
        [(order.col.lower(), order.order) for order in sd.sortCols or ()],
    )


def _format(sd: Any) -> tuple[str, str]:
    return sd.inputFormat, sd.serdeInfo.serializationLib


def _kind(table: Any) -> dict[str, str]:
    kept = ("transactional", "transactional_properties", "bucketing_version")
    return {key: value for key, value in (table.parameters or {}).items() if key in kept}


def _alter(client: DomainClient, name: TableName, table: Any) -> None:
    """Alter a table, and its partitions.

    Their files are never read by other columns: types by position mean nothing.
    """
    before = client.getMetaConf(_CHECK)
    client.setMetaConf(_CHECK, "false")
    try:
        client.alter_table_with_cascade(name.db, name.table, table, True)  # noqa: FBT003 - Thrift's
    finally:
        client.setMetaConf(_CHECK, before)
