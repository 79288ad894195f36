"""Partitions as they are stored: the completion of a new partition, and the checks of a client's list.

Rule: the name decides which partition it is, the values are kept as sent. A descriptor and its location are kept
apart, because most partitions of a table share one descriptor. Source: CAT-P1 to CAT-P7.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import NamedTuple

from metastore.acid.table_kinds import is_insert_only
from metastore.catalog.model import Json, Parameters, Table, TableType
from metastore.catalog.rules import descriptors, locations
from metastore.catalog.rules.partition_syntax import PartitionKey
from metastore.catalog.rules.storage_classes import Classes, require_storage
from metastore.catalog.rules.tables import CONSUMED, DDL_TIME, is_true, is_view
from metastore.errors import InvalidRequestError, MetaError
from metastore.ids import TableName
from metastore.partition_names import make_name


@dataclass(frozen=True)
class Partition:
    """A partition of a table. ``sd`` has no location and may be shared by many partitions: never change it."""

    name: str
    values: Sequence[str]
    sd: Json | None
    location: str | None
    parameters: Parameters
    create_time: int = 0
    last_access_time: int = 0
    write_id: int = -1


@dataclass(frozen=True)
class PartitionDraft:
    """A partition as a client sends it; ``table``: the table that it names. ``sd`` as in ``Partition``."""

    table: TableName
    values: Sequence[str | None] | None
    sd: Json | None
    parameters: Parameters
    location: str | None = None
    create_time: int = 0
    last_access_time: int = 0
    write_id: int = -1


class Doomed(NamedTuple):
    """A partition as far as a drop has to know it; ``is_archived``, ``original_location``: parameters."""

    name: str
    location: str | None
    is_archived: str | None = None
    original_location: str | None = None


def partition_keys(table: Table) -> list[PartitionKey]:
    """Return the table's partition keys with their types."""
    return [PartitionKey(key["name"], key["type"]) for key in table.partition_keys]


def partition_name(keys: Sequence[str], values: Sequence[str | None] | None, default: str) -> str:
    """Return the name that these values have in a table with these keys.

    Raises: InvalidRequestError if they do not fit.
    """
    if not values or len(values) != len(keys):
        raise InvalidRequestError(
            f"Invalid partition key & values; keys [{_listed(keys)}], values [{_listed(values or ())}]"
        )
    if any(value is None for value in values):
        raise InvalidRequestError(f"Null is not a partition value; keys [{_listed(keys)}], values [{_listed(values)}]")
    return make_name(keys, values, default)


def prefix_length(keys: Sequence[str], values: Sequence[str | None] | None) -> int:
    """Count the keys that a partial specification names. Raises: InvalidRequestError if it is empty or too long."""
    if not values or len(values) > len(keys):
        raise InvalidRequestError(
            f"Incorrect number of partition values. numPartKeys={len(keys)}, partVals={len(values or ())}"
        )
    return len(values)


def require_allowed_characters(values: Iterable[str | None], pattern: str) -> None:
    """Raise InvalidRequestError for NUL, or for a value that the configured pattern (empty: any) does not match."""
    values = list(values)
    with_nul = next((value for value in values if "\0" in (value or "")), None)
    if with_nul is not None:
        raise InvalidRequestError(
            f"Partition value {with_nul!r} contains a NUL character, which no condition could name. Write it without."
        )
    bad = next((value for value in values if pattern and not re.fullmatch(pattern, value or "")), None)
    if bad is not None:
        raise InvalidRequestError(
            f"Partition value '{bad}' contains a character not matched by whitelist pattern '{pattern}'. "
            "Configure with metastore.partition.name.whitelist.pattern"
        )


def with_descriptors(table: Table, drafts: Iterable[PartitionDraft]) -> list[PartitionDraft]:
    """Return the drafts with checked and completed descriptors; a shared descriptor is worked on once.

    Raises: InvalidRequestError.
    """
    complete: dict[int, Json | None] = {}
    partitions = []
    for draft in drafts:
        if id(draft.sd) not in complete:
            complete[id(draft.sd)] = _descriptor(table, draft.sd)
        partitions.append(replace(draft, sd=complete[id(draft.sd)]))
    return partitions


def new_partition(table: Table, draft: PartitionDraft, default: str, inherited: Mapping[str, str]) -> Partition:
    """Return the partition to store for a client's request. ``create_time`` is set later. Raises: MetaError."""
    if table.type == TableType.INDEX or not table.partition_keys:
        raise InvalidRequestError(f"{table.name} is not partitioned: it has no partition keys")
    name = partition_name(table.partition_key_names, draft.values, default)
    location = draft.location
    if is_view(table):
        if location:
            raise InvalidRequestError("Cannot specify location for a view partition")
    elif location:
        location = locations.qualified(location, table.location or "")
    else:
        location = locations.child(table.location, name) if table.location else None
    return Partition(
        name,
        [value or "" for value in draft.values or ()],
        draft.sd,
        location or None,
        {**inherited, **_stored_parameters(draft.parameters)},
        last_access_time=draft.last_access_time,
        write_id=draft.write_id,
    )


def altered_partition(table: Table, old: Partition, draft: PartitionDraft, now: int) -> Partition:
    """Return the partition to store when a client replaces ``old`` by ``draft``; its name stays."""
    return replace(
        old,
        sd=draft.sd,
        location=locations.qualified(draft.location, table.location or "") if draft.location else old.location,
        parameters=stamped(_stored_parameters(draft.parameters), now),
        create_time=draft.create_time,
        last_access_time=draft.last_access_time,
        write_id=draft.write_id if draft.write_id > 0 else old.write_id,
    )


def require_storable(
    table: Table,
    partitions: Iterable[Partition],
    more: Iterable[Classes],
    stored: Mapping[str, Partition] | None = None,
) -> None:
    """Raise MetaError for partitions of an insert-only table whose storage is refused (``storage_classes``).

    ``more``: classes that the operator allows; ``stored``: partitions as they are, by name, whose storage may stay.
    """
    if is_insert_only(table.parameters):
        for partition in partitions:
            known = [(stored[partition.name].sd, table.parameters)] if stored else []
            require_storage(f"{table.name}/{partition.name}", partition.sd, table.parameters, more, known)


def stamped(parameters: Parameters, now: int) -> Parameters:
    """Return the parameters with the time of the change, unless the client sent it."""
    return parameters if parameters.get(DDL_TIME, "0") != "0" else {**parameters, DDL_TIME: str(now)}


def require_of_table(name: TableName, drafts: Iterable[PartitionDraft]) -> None:
    """Raise InvalidRequestError for a partition that names another table."""
    for draft in drafts:
        if draft.table != name:
            raise InvalidRequestError(
                f"Partition does not belong to target table {name}. It belongs to the table {draft.table} : "
                f"{list(draft.values or ())}"
            )


def require_distinct(partitions: Iterable[Partition]) -> None:
    """Raise InvalidRequestError if a list has the same partition twice."""
    seen: set[str] = set()
    for partition in partitions:
        if partition.name in seen:
            raise InvalidRequestError(f"Duplicate partitions in the list: {partition.name} is there twice")
        seen.add(partition.name)


def inherited_parameters(table: Table, names: str) -> Parameters:
    """Return the table's parameters that a new partition starts with: a comma-separated list of names, or ``*``."""
    wanted = {name.strip() for name in names.split(",")}
    return {key: value for key, value in table.parameters.items() if "*" in wanted or key in wanted}


def changed_columns(old: Partition, new: Partition) -> list[str]:
    """Return columns of the partition whose statistics no longer hold."""
    if old.sd == new.sd:
        return []
    now = {column["name"]: column["type"] for column in (new.sd or {}).get("cols", ())}
    return [column["name"] for column in (old.sd or {}).get("cols", ()) if now.get(column["name"]) != column["type"]]


def renamed_location(table: Table, old: Partition, new_name: str) -> str | None:
    """Return the new directory of a renamed partition; None if it stays (external tables, views)."""
    moves = table.type != TableType.EXTERNAL or is_true(table.parameters.get("TRANSLATED_TO_EXTERNAL"))
    if not moves or is_view(table) or table.location is None or old.location is None:
        return None
    target = locations.child(table.location, new_name)
    return target if target != old.location else None


def data_locations(table: Table, dropped: Iterable[Doomed]) -> list[str]:
    """Return the directories that hold the data of dropped partitions, never a directory that the table itself lies in.

    An archived partition's data is where it was before it was archived.
    """
    removable = []
    for partition in dropped:
        location = (is_true(partition.is_archived) and partition.original_location) or partition.location
        if location and not (table.location and locations.is_below(table.location, location)):
            removable.append(location)
    return removable


def parents_to_tidy(table: Table, location: str) -> list[str]:
    """Return directories between a partition's and its table's that may have become empty, innermost first."""
    if not table.location or not locations.is_below(location, table.location):
        return []
    parents = []
    for _ in table.partition_keys[1:]:
        location = location.rsplit("/", 1)[0]
        if location == table.location or not locations.is_below(location, table.location):
            break
        parents.append(location)
    return parents


def exchanged_prefix(table: Table, spec: Mapping[str, str]) -> list[str]:
    """Return the values of the leading keys that a specification fixes; empty values and unknown keys leave a key open.

    Raises: InvalidRequestError for an empty specification, and for a fixed key behind an open key.
    """
    values = [spec.get(key) or "" for key in table.partition_key_names]
    prefix = list(takewhile(bool, values))
    if not spec or not prefix or any(values[len(prefix) :]):
        keys = ", ".join(table.partition_key_names)
        raise InvalidRequestError(f"Partitions to exchange are given by their leading keys ({keys}), not by {spec}")
    return prefix


def require_exchangeable(source: Table, target: Table) -> None:
    """Raise InvalidRequestError if the columns or keys of two tables differ in name or type."""
    for what, ours, theirs in (
        ("columns", source.sd["cols"], target.sd["cols"]),
        ("partition keys", source.partition_keys, target.partition_keys),
    ):
        if [(field["name"], field["type"]) for field in ours] != [(field["name"], field["type"]) for field in theirs]:
            raise InvalidRequestError(f"The tables have different {what}: {source.name} and {target.name}")


def require_within(limit: int, wanted: int, count: int, table: Table) -> None:
    """Raise MetaError if a call would return more whole partitions than one call may (``limit`` -1: any number)."""
    if limit >= 0 and (count > limit and (wanted < 0 or wanted > limit)):
        raise MetaError(
            f"Number of partitions scanned (={count}) on table '{table.name.table}' exceeds limit (={limit}). "
            "This is controlled on the metastore server by metastore.limit.partition.request."
        )


def _descriptor(table: Table, sd: Json | None) -> Json | None:
    if sd is None:
        if is_view(table):
            return None
        raise InvalidRequestError(f"A partition of {table.name} has no storage descriptor")
    if "serdeInfo" not in sd and not is_view(table):
        raise InvalidRequestError(f"A partition of {table.name} has no serdeInfo")
    if any("name" not in column or "type" not in column for column in sd.get("cols", ())):
        raise InvalidRequestError(f"A partition of {table.name} has a column without name or type")
    complete = descriptors.normalised(sd)
    return complete if "cols" in sd else {name: value for name, value in complete.items() if name != "cols"}


def _stored_parameters(parameters: Parameters) -> Parameters:
    return {key: value for key, value in parameters.items() if key not in CONSUMED}


def _listed(texts: Iterable[str | None]) -> str:
    """Format a list in Hive's way for these messages."""
    return "".join(f"{text}, " for text in texts)
