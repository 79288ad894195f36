"""Where the partitions of a table lie, as the metastore has them registered: only those that a statement is about.

Rules kept here. Spark decides by a partition's typed values, so the choice is not left to the metastore's filters: they
compare in their own way. The names of all partitions are asked for (or those with a text that a key must equal: a text
has one spelling), and by name those that the conditions leave. And a partition is known by its typed values when it is
written: rows of ``p=03`` (INT) or ``n=1.5`` (DECIMAL(6,2)), as Hive spells it, have the values 3 and 1.50, and what is
deleted of them must not go to partitions of those names. Where only Spark can say which value it reads (``2024-1-5``,
any TIMESTAMP), it is asked.
"""

import copy
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import cache, cached_property
from typing import Any, TypeAlias

from metastore.acid.types import HiveType, parse_type
from metastore.acid_tables.partitions import PartitionPlace, partition_name, partition_values
from metastore.acid_tables.pruning import Constant, Restriction, Values, exact_texts, is_text, typed
from metastore.acid_tables.serde_storage import HiveStorage, require_same_types
from metastore.acid_tables.table import AcidTable, FileFormat, TableKind
from metastore.client.domain_client import DomainClient
from metastore.errors import InvalidOperationError
from metastore.partition_names import DEFAULT_PARTITION, escape, unescape, values_for

_type = cache(parse_type)
Typed: TypeAlias = tuple[Constant | None, ...]
Read: TypeAlias = Callable[[Sequence[Values]], Sequence[Values]]
"""Values of partitions → the same as Spark writes what it reads there; NULL where it reads nothing."""

_ASKED_ONE_BY_ONE = 32
"""So many partitions that a statement writes are asked for each alone, then all that there are."""


class Locations(dict[str, str]):
    """Where each partition lies, by its key; a new partition lies below the table.

    ``known``: partitions that are known already. ``existing``: the same for rows that exist, whose partitions do too.
    ``read``: what to ask about spellings that are not the usual ones.
    """

    def __init__(self, client: DomainClient, table: AcidTable, known: Iterable[PartitionPlace], read: Read) -> None:
        super().__init__()
        self.client = client
        self.table = table
        self.read = read
        self.existing = _OfExistingRows(self)
        self.names: dict[str, str] = {}
        """The partition's name for each key that was met."""
        self.new: set[str] = set()
        """Names that are not registered yet."""
        self._known: dict[Typed, dict[str, PartitionPlace]] = defaultdict(dict)
        self._note(known, are_read=True)
        self._asked = 0

    def __missing__(self, key: str) -> str:
        """The location for a key that is met for the first time. Raises: as ``find``."""
        return self.find(key, may_be_new=True)

    def find(self, key: str, *, may_be_new: bool) -> str:
        """The location for a key, as Spark writes its values.

        Raises: InvalidOperationError where it is not clear which partition is meant.
        """
        values = [value or None for value in partition_values(key)]
        name = partition_name(self.table, values)
        found = list(self._of_values(values, name, may_be_new=may_be_new))
        if len(found) > 1:
            raise InvalidOperationError(
                f"{found[0].name} and {found[1].name} of {self.table.name} are the same "
                "partition to Spark: move the rows of one into the other, and drop it."
            )
        if not found and not may_be_new:
            raise InvalidOperationError(
                f"A partition of {self.table.name} spells its values otherwise than Spark, "
                f"which calls it {name}: its rows cannot be changed."
            )
        if found and found[0].stored_as is not None:
            raise InvalidOperationError(
                f"The partition {found[0].name} of {self.table.name} is stored otherwise than "
                "the table is now: nothing can be written there. Drop it, or use Hive."
            )
        if not found:
            self.new.add(name)
        self.names[key] = found[0].name if found else name
        self[key] = found[0].location if found else f"{self.table.location}/{name}"
        return self[key]

    def _of_values(self, values: Values, name: str, *, may_be_new: bool) -> Iterable[PartitionPlace]:
        wanted = _typed_values(self.table, values)
        if wanted not in self._known and may_be_new and self._asked <= _ASKED_ONE_BY_ONE:
            self._asked += 1
            self._note(_registered(self.client, self.table, [name] if self._asked <= _ASKED_ONE_BY_ONE else None))
        if wanted not in self._known and may_be_new and self._asked <= _ASKED_ONE_BY_ONE:
            self._note(_registered(self.client, self.table, self._otherwise_spelled.get(wanted, [])))
        return self._known[wanted].values() if wanted in self._known else ()

    def _note(self, places: Iterable[PartitionPlace], *, are_read: bool = False) -> None:
        places = list(places)
        for place, values in zip(places, self._read([place.values for place in places]), strict=True):
            if are_read or _same_nulls(place.values, values):
                self._known[_typed_values(self.table, values)][place.name] = place

    @cached_property
    def _otherwise_spelled(self) -> dict[Typed, list[str]]:
        """The names of all partitions, if some may mean the same."""
        names: dict[Typed, list[str]] = defaultdict(list)
        if not all(map(is_text, self._types)):
            found = _names(self.client, self.table)
            for name, values in zip(found, self._read(_values(self.table, found)), strict=True):
                names[_typed_values(self.table, values)].append(name)
        return names

    def _read(self, found: Sequence[Values]) -> Sequence[Values]:
        """Values as Spark writes them, or in a spelling that is known to mean the same; Spark is asked for the rest."""
        odd = [
            values
            for values in found
            if not all(
                value is None or typed(value, kind) is not None for value, kind in zip(values, self._types, strict=True)
            )
        ]
        known = dict(zip(map(tuple, odd), self.read(odd), strict=True)) if odd else {}
        return [known.get(tuple(values), values) for values in found]

    @cached_property
    def _types(self) -> list[HiveType]:
        return [_type(key.type) for key in self.table.partition_keys]


class _OfExistingRows(dict[str, str]):
    def __init__(self, locations: Locations) -> None:
        super().__init__()
        self.locations = locations

    def __missing__(self, key: str) -> str:
        self[key] = self.locations.get(key) or self.locations.find(key, may_be_new=False)
        return self[key]


def partition_places(client: DomainClient, table: AcidTable, where: Restriction | None = None) -> list[PartitionPlace]:
    """Where the partitions of a table lie, or those that ``where`` leaves; an unpartitioned table is one place."""
    if not table.partition_keys:
        return [PartitionPlace("", (), table.location)]
    if where is None:
        return _registered(client, table)
    texts = exact_texts(where, len(table.partition_keys))
    if any(texts):
        names: list[str] = client.get_partition_names_ps(table.name.db, table.name.table, texts, -1)
    else:
        names = _names(client, table)
    kept = [name for name, values in zip(names, _values(table, names), strict=True) if where.may_hold(values)]
    return _registered(client, table, kept if any(texts) or len(kept) < len(names) else None)


def places_named(client: DomainClient, table: AcidTable, names: list[str]) -> list[PartitionPlace]:
    """Where the partitions of these names lie, of those that there are."""
    return _registered(client, table, names)


def add_partitions(client: DomainClient, table: AcidTable, keys: Sequence[str]) -> None:
    """Register partitions below the table, given their keys; those that somebody else has registered stay."""
    if not keys:
        return
    types = client.types
    sd = client.get_table(table.name.db, table.name.table).sd
    partitions = []
    for key in keys:
        values = partition_values(key)
        one = copy.copy(sd)
        one.location = f"{table.location}/{partition_name(table, values)}"
        partitions.append(
            types.Partition(
                values=[value or DEFAULT_PARTITION for value in values],
                dbName=table.name.db,
                tableName=table.name.table,
                sd=one,
                parameters={},
                createTime=0,
                lastAccessTime=0,
            )
        )
    client.add_partitions_req(
        types.AddPartitionsRequest(
            dbName=table.name.db, tblName=table.name.table, parts=partitions, ifNotExists=True, needResult=False
        )
    )


def _typed_values(table: AcidTable, values: Sequence[str | None]) -> Typed:
    """Partition values that are equal where the same is meant, as far as that is known."""
    kinds = (_type(key.type) for key in table.partition_keys)
    return tuple(
        value if value is None or (same := typed(value, kind)) is None else same
        for value, kind in zip(values, kinds, strict=True)
    )


def _same_nulls(values: Values, others: Values) -> bool:
    """Whether what is NULL in one is so in the other: a text that cannot be read is no place for rows with NULL."""
    return all((one is None) == (other is None) for one, other in zip(values, others, strict=True))


def _names(client: DomainClient, table: AcidTable) -> list[str]:
    names: list[str] = client.get_partition_names(table.name.db, table.name.table, -1)
    return names


def _values(table: AcidTable, names: Iterable[str]) -> list[Values]:
    """The values in each name. There may be 100,000 names, most often in the form that ``make_name`` gives them."""
    starts = [f"{escape(key)}=" for key in table.partition_names]
    value = cache(unescape)
    found: list[Values] = []
    values: list[str] | None
    for name in names:
        parts = name.split("/")
        if len(parts) == len(starts) and all(map(str.startswith, parts, starts)):
            values = [value(part[len(start) :]) for part, start in zip(parts, starts, strict=True)]
        else:
            values = values_for(table.partition_names, name)
        if values is None:
            raise InvalidOperationError(f"{name} is not a partition name of {table.name}.")
        found.append(_without_default(values))
    return found


def _registered(client: DomainClient, table: AcidTable, names: list[str] | None = None) -> list[PartitionPlace]:
    """All partitions, or those of these names that there are."""
    found: list[Any]
    if names is None:
        found = client.get_partitions(table.name.db, table.name.table, -1)
    else:
        found = client.get_partitions_by_names(table.name.db, table.name.table, names) if names else []
    return [
        PartitionPlace(
            partition_name(table, list(one.values)),
            _without_default(one.values),
            one.sd.location,
            _stored_otherwise(table, one),
        )
        for one in found
    ]


def _stored_otherwise(table: AcidTable, partition: Any) -> FileFormat | None:
    """How a partition's files are stored, if not as the table's are."""
    if table.kind is not TableKind.INSERT_ONLY:
        return None
    found = table.stored_as(partition.sd)
    if isinstance(found, HiveStorage):
        own = [(column.name.lower(), column.type) for column in partition.sd.cols or ()]
        require_same_types(partition_name(table, list(partition.values)), found, own)
    return None if found == table.file_format else found


def _without_default(values: Iterable[str]) -> tuple[str | None, ...]:
    return tuple(None if value in ("", DEFAULT_PARTITION) else value for value in values)
