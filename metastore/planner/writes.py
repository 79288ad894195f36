"""The calls of a write: the place for a statement's staged files, their final names, its partitions.

Rules (ACID-22, ACID-25 to ACID-28). The metastore confirms that the transaction is open right before files get names
that readers look at. A partition is identified by its typed values, so that rows go to the partition with the same
values, in any spelling. New partitions are registered, and all written partitions announced, before the transaction may
commit. The planner renames nothing: the writer of the files does, with the planner's names.
"""

import reprlib
from collections.abc import Iterable, Mapping, Sequence

from metastore.acid.names import staging_directory
from metastore.acid.table_kinds import TableKind
from metastore.acid.types import HiveType, parse_type
from metastore.acid_tables.partitions import partition_key, partition_name, partition_values
from metastore.acid_tables.pruning import Constant, Values, is_text, typed
from metastore.acid_tables.serde_storage import HiveStorage
from metastore.acid_tables.table import AcidTable
from metastore.client import DomainClient, txn_calls
from metastore.client.constraints import enabled_constraints
from metastore.client.outcome import Fence
from metastore.client.partitions import Locations, partition_places, places_named, typed_values
from metastore.errors import InvalidInputError, InvalidOperationError
from metastore.locks.rules import Operation
from metastore.planner.body import Body
from metastore.planner.call import Answer, PlannerCall
from metastore.planner.partition_spelling import as_spark_writes
from metastore.planner.staged_files import StagedFile, names_in_place, staged_directories
from metastore.planner.tables import acid_table, require_known

_ALL, _DYNAMIC = "all", "dynamic"
_MOST_STATEMENTS = 10_000
_SPELLED_ONCE = frozenset({"tinyint", "smallint", "int", "bigint", "date"})
"""Types of partition keys besides texts whose values Spark spells as ``str`` does."""


def write(call: PlannerCall) -> Answer:
    """Begin a statement that writes a table: return its write id, its staging place and the rules for its rows.

    ``in_place``: the number of statement ids whose files tasks can upload to their final names. The answer has these
    names, or null if files are to be staged all the same. Raises: WriteConflictError for another definition.
    """
    body, table = call.body, _written_table(call)
    require_known(table, body)
    txn_id, statement = body.number("txn"), body.number("statement")
    rules = enabled_constraints(call.client, table.name).required(table.name).rules()
    write_id = txn_calls.allocate_write_id(call.client, txn_id, table.name.db, table.name.table)
    in_place = None
    if body.has("in_place") and _has_usual_places(call.client, table):
        in_place = names_in_place(
            write_id,
            range(statement, statement + min(body.number("in_place"), _MOST_STATEMENTS)),
            is_base=body.has("overwrite"),
            has_events=table.kind is TableKind.FULL_ACID,
        )._asdict()
    return {
        "write_id": write_id,
        "statement": statement,
        "in_place": in_place,
        "location": table.location,
        "staging": _staging(table, txn_id, statement),
        "rules": [{"label": rule.label, "broken": rule.broken} for rule in rules],
    }


def publish(call: PlannerCall) -> Answer:
    """Return the final names of a statement's staged files. Raises: TxnAbortedError, NoSuchTxnError (it has ended)."""
    body, table = call.body, _written_table(call)
    txn_id, statement = body.number("txn"), body.number("statement")
    files = [_staged(file) for file in body.bodies("files")]
    keys = [file.key for file in files if file.key is not None]
    locations = _locations(call.client, table, keys)

    def location(file: StagedFile) -> str:
        if file.key is None:
            return table.location
        return (locations.existing if file.is_delete else locations)[_respelled(table, file.key)]

    directories = staged_directories(
        files,
        staging=_staging(table, txn_id, statement),
        write_id=txn_calls.allocate_write_id(call.client, txn_id, table.name.db, table.name.table),
        location=location,
        is_base=body.has("overwrite"),
        has_events=table.kind is TableKind.FULL_ACID,
        emptied=[
            locations[_respelled(table, key)] if table.partition_keys else table.location
            for key in _emptied(call.client, table, body)
        ],
    )
    Fence(call.client, txn_id).require_open()
    answers = [(directory.is_delete, directory.answer()) for directory in directories]
    return {
        "deletes": [answer for is_delete, answer in answers if is_delete],
        "inserts": [answer for is_delete, answer in answers if not is_delete],
    }


def announce(call: PlannerCall) -> Answer:
    """Register a statement's new partitions, and all its partitions with the transaction."""
    body, table = call.body, _written_table(call)
    if not table.partition_keys:
        return {}
    keys = [*body.texts("keys"), *_emptied(call.client, table, body)]
    locations = _locations(call.client, table, keys)
    names = locations.registered(keys)
    txn_id, name = body.number("txn"), table.name
    write_id = txn_calls.allocate_write_id(call.client, txn_id, name.db, name.table)
    operation = body.choice("operation", Operation)
    txn_calls.add_dynamic_partitions(call.client, txn_id, write_id, name.db, name.table, names, operation)
    return {}


def _written_table(call: PlannerCall) -> AcidTable:
    """Return the table of a call that adds rows or replaces them. Raises: InvalidOperationError."""
    table = acid_table(call.client, call.body.table())
    if table.kind is TableKind.INSERT_ONLY:
        if isinstance(table.file_format, HiveStorage):
            table.file_format.require_writable(table.name)
        elif not table.file_format:
            raise InvalidOperationError(f"The metastore does not say how {table.name} is stored: write it with Hive.")
    return table


def _has_usual_places(client: DomainClient, table: AcidTable) -> bool:
    """Return True if every partition is in the directory that Spark would choose for it below the table."""
    types = _types(table)
    if not all(is_text(kind) or kind.kind in _SPELLED_ONCE for kind in types):
        return False
    return all(
        place.location == f"{table.location}/{partition_name(table, place.values)}"
        and all(
            value is None or _is_spelled_by_spark(value, kind) for value, kind in zip(place.values, types, strict=True)
        )
        for place in (partition_places(client, table) if types else ())
    )


def _is_spelled_by_spark(text: str, kind: HiveType) -> bool:
    return is_text(kind) or str(typed(text, kind)) == text


def _staging(table: AcidTable, txn_id: int, statement: int) -> str:
    return f"{table.location}/{staging_directory(txn_id, statement)}"


def _staged(file: Body) -> StagedFile:
    return StagedFile(
        path=file.text("path"),
        key=file.text("key") if file.has("key") else None,
        bucket=file.number("bucket"),
        statement=file.number("statement"),
        is_delete=file.flag("is_delete"),
    )


def _emptied(client: DomainClient, table: AcidTable, body: Body) -> Sequence[str]:
    """Return keys of partitions that an overwrite empties; for an unpartitioned table a single key of any text."""
    how = body.fields.get("overwrite")
    if isinstance(how, dict):
        named = body.body("overwrite")
        if named.has("values"):
            return _keys_with(client, table, named.body("values").fields)
        return named.texts("keys") if named.has("keys") else [named.text("key")]
    if how == _ALL:
        return [partition_key(place.values) for place in partition_places(client, table)]
    if how not in (None, _DYNAMIC):
        raise InvalidInputError(
            f'overwrite must be null, "{_ALL}", "{_DYNAMIC}", {{"key": ...}}, {{"keys": [...]}} or '
            f'{{"values": {{...}}}}, not {reprlib.repr(how)}.'
        )
    return []


def _keys_with(client: DomainClient, table: AcidTable, wanted: Mapping[str, str | None]) -> Sequence[str]:
    """Return keys of partitions that have these values of some partition keys, in any spelling."""
    types = _types(table)

    def of_wanted(values: Values) -> list[Constant | None]:
        read = typed_values(table, as_spark_writes(values, types))
        return [value for name, value in zip(table.partition_names, read, strict=True) if name in wanted]

    values = of_wanted([wanted.get(name) or None for name in table.partition_names])
    places = partition_places(client, table)
    return [partition_key(place.values) for place in places if of_wanted(place.values) == values]


def _locations(client: DomainClient, table: AcidTable, keys: Iterable[str]) -> Locations:
    """Look up partitions' locations. Existing rows are in partitions with registered names: one look-up has all."""
    names = dict.fromkeys(partition_name(table, partition_values(key)) for key in keys)
    types = _types(table)

    def read(partitions: Sequence[Values]) -> Sequence[Values]:
        return [as_spark_writes(values, types) for values in partitions]

    return Locations(client, table, places_named(client, table, list(names)), read)


def _respelled(table: AcidTable, key: str) -> str:
    """Return the key with the values in Spark's spelling."""
    return partition_key(as_spark_writes(partition_values(key), _types(table)))


def _types(table: AcidTable) -> list[HiveType]:
    return [parse_type(key.type) for key in table.partition_keys]
