"""Locations of a table's partitions, as registered in the metastore: only of partitions that a statement needs.

Rules: Spark decides by a partition's typed values, and the metastore's filters compare in their own way, so those
filters are not used. The names of all partitions are fetched (or of those with the text that a key must equal: a text
has a single spelling), then by name the partitions that the conditions leave. A write identifies a partition by its
typed values too: rows of ``p=03`` (INT) or ``n=1.5`` (DECIMAL(6,2)), as Hive spells them, have the values 3 and 1.50,
and their deletes must not go to partitions of those names. Spark itself reads the texts that only it can (``2024-1-5``,
any TIMESTAMP).
"""

import copy
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import cache, cached_property
from typing import Any, TypeAlias

from metastore.acid.table_kinds import TableKind
from metastore.acid.types import HiveType, parse_type
from metastore.acid_tables.partitions import PartitionPlace, partition_name, partition_values
from metastore.acid_tables.pruning import Constant, Restriction, Values, exact_texts, is_text, typed
from metastore.acid_tables.serde_storage import HiveStorage, require_same_types
from metastore.acid_tables.table import AcidTable, FileFormat
from metastore.client.domain_client import DomainClient
from metastore.errors import InvalidOperationError
from metastore.partition_names import DEFAULT_PARTITION, escape, unescape, values_for

_type = cache(parse_type)
Typed: TypeAlias = tuple[Constant | None, ...]
Read: TypeAlias = Callable[[Sequence[Values]], Sequence[Values]]
"""Values of partitions → the values that Spark reads from those texts, as texts; NULL for an unreadable text."""

_LOOKED_UP_SINGLY = 32
"""A statement looks up so many partitions that it writes one by one, then all partitions of the table."""


class Locations(dict[str, str]):
    """The location of each partition, by its key; a new partition is placed below the table.

    ``known``: partitions that were already looked up. ``existing``: a mapping that raises an error for an unknown
    partition, for rows that are already in the table. ``read``: parses partition values in a spelling that Spark does
    not write.
    """

    def __init__(self, client: DomainClient, table: AcidTable, known: Iterable[PartitionPlace], read: Read) -> None:
        super().__init__()
        self.client = client
        self.table = table
        self.read = read
        self.existing = _OfExistingRows(self)
        self.names: dict[str, str] = {}
        """The partition's name, for each key that was looked up."""
        self.new: set[str] = set()
        """Names that are not registered yet."""
        self._known: dict[Typed, dict[str, PartitionPlace]] = defaultdict(dict)
        self._note(known, are_read=True)
        self._asked = 0

    def __missing__(self, key: str) -> str:
        """Look up a new key. Raises: as ``find``."""
        return self.find(key, may_be_new=True)

    def find(self, key: str, *, may_be_new: bool) -> str:
        """Return the location for a key with values in Spark's spelling.

        Raises: InvalidOperationError for values of two partitions, of no partition unless ``may_be_new``, or of a
            partition with an older format than the table.
        """
        values = [value or None for value in partition_values(key)]
        name = partition_name(self.table, values)
        places = list(self._of_values(values, name, may_be_new=may_be_new))
        if len(places) > 1:
            raise InvalidOperationError(
                f"{places[0].name} and {places[1].name} of {self.table.name} are the same "
                "partition to Spark: move the rows of one into the other, and drop it."
            )
        if not places and not may_be_new:
            raise InvalidOperationError(
                f"A partition of {self.table.name} spells its values otherwise than Spark, "
                f"which calls it {name}: its rows cannot be changed."
            )
        if places and places[0].stored_as is not None:
            raise InvalidOperationError(
                f"The partition {places[0].name} of {self.table.name} is stored otherwise than "
                "the table is now: nothing can be written there. Drop it, or use Hive."
            )
        if not places:
            self.new.add(name)
        self.names[key] = places[0].name if places else name
        self[key] = places[0].location if places else f"{self.table.location}/{name}"
        return self[key]

    def registered(self, keys: Sequence[str]) -> list[str]:
        """Register the new partitions among these keys; return the names of all, sorted. Raises: as ``find``."""
        for key in keys:
            self[key]
        written = {self.names[key]: key for key in keys}
        add_partitions(self.client, self.table, [key for name, key in written.items() if name in self.new])
        return sorted(written)

    def _of_values(self, values: Values, name: str, *, may_be_new: bool) -> Iterable[PartitionPlace]:
        wanted = typed_values(self.table, values)
        if wanted not in self._known and may_be_new and self._asked <= _LOOKED_UP_SINGLY:
            self._asked += 1
            self._note(_registered(self.client, self.table, [name] if self._asked <= _LOOKED_UP_SINGLY else None))
        if wanted not in self._known and may_be_new and self._asked <= _LOOKED_UP_SINGLY:
            self._note(_registered(self.client, self.table, self._otherwise_spelled.get(wanted, [])))
        return self._known[wanted].values() if wanted in self._known else ()

    def _note(self, places: Iterable[PartitionPlace], *, are_read: bool = False) -> None:
        places = list(places)
        for place, values in zip(places, self._read([place.values for place in places]), strict=True):
            if are_read or _same_nulls(place.values, values):
                self._known[typed_values(self.table, values)][place.name] = place

    @cached_property
    def _otherwise_spelled(self) -> dict[Typed, list[str]]:
        """The names of all partitions by typed values, if two names may have the same."""
        names: dict[Typed, list[str]] = defaultdict(list)
        if not all(map(is_text, self._types)):
            known = _names(self.client, self.table)
            for name, values in zip(known, self._read(_values(self.table, known)), strict=True):
                names[typed_values(self.table, values)].append(name)
        return names

    def _read(self, partitions: Sequence[Values]) -> Sequence[Values]:
        """Return values in Spark's spelling, or in a spelling that certainly has the same value.

        Spark reads the others.
        """
        odd = [
            values
            for values in partitions
            if not all(
                value is None or typed(value, kind) is not None for value, kind in zip(values, self._types, strict=True)
            )
        ]
        known = dict(zip(map(tuple, odd), self.read(odd), strict=True)) if odd else {}
        return [known.get(tuple(values), values) for values in partitions]

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
    """Return the partitions of a table, without those that ``where`` leaves out.

    An unpartitioned table is a single place.
    Raises: InvalidOperationError for an invalid name, or files of another type than the table's.
    """
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
    """Return the existing partitions among these names. Raises: as ``partition_places``."""
    return _registered(client, table, names)


def new_partition(
    types: Any, table: AcidTable, sd: Any, values: Sequence[str | None], location: str | None = None
) -> Any:
    """Return a partition to register. ``sd``: the table's; ``location``: None for the usual place below the table."""
    storage = copy.copy(sd)
    storage.location = f"{table.location}/{partition_name(table, values)}" if location is None else location
    return types.Partition(
        values=[value or DEFAULT_PARTITION for value in values],
        dbName=table.name.db,
        tableName=table.name.table,
        sd=storage,
        parameters={},
        createTime=0,
        lastAccessTime=0,
    )


def add_partitions(client: DomainClient, table: AcidTable, keys: Sequence[str]) -> None:
    """Register partitions with these keys below the table; partitions that exist already stay as they are."""
    if not keys:
        return
    types = client.types
    sd = client.get_table(table.name.db, table.name.table).sd
    partitions = [new_partition(types, table, sd, partition_values(key)) for key in keys]
    client.add_partitions_req(
        types.AddPartitionsRequest(
            dbName=table.name.db, tblName=table.name.table, parts=partitions, ifNotExists=True, needResult=False
        )
    )


def typed_values(table: AcidTable, values: Sequence[str | None]) -> Typed:
    """Convert partition values to typed values; a text that cannot be typed stays a text."""
    kinds = (_type(key.type) for key in table.partition_keys)
    return tuple(
        value if value is None or (same := typed(value, kind)) is None else same
        for value, kind in zip(values, kinds, strict=True)
    )


def _same_nulls(values: Values, others: Values) -> bool:
    """Return True if both are NULL in the same keys.

    Rows with NULL do not belong to a partition with an unreadable text.
    """
    return all((value is None) == (other is None) for value, other in zip(values, others, strict=True))


def _names(client: DomainClient, table: AcidTable) -> list[str]:
    names: list[str] = client.get_partition_names(table.name.db, table.name.table, -1)
    return names


def _values(table: AcidTable, names: Iterable[str]) -> list[Values]:
    """Parse the values in each name. There may be 100,000 names, most often in ``make_name``'s form."""
    starts = [f"{escape(key)}=" for key in table.partition_names]
    value = cache(unescape)
    result: list[Values] = []
    values: list[str] | None
    for name in names:
        parts = name.split("/")
        if len(parts) == len(starts) and all(map(str.startswith, parts, starts)):
            values = [value(part[len(start) :]) for part, start in zip(parts, starts, strict=True)]
        else:
            values = values_for(table.partition_names, name)
        if values is None:
            raise InvalidOperationError(f"{name} is not a partition name of {table.name}.")
        result.append(_without_default(values))
    return result


def _registered(client: DomainClient, table: AcidTable, names: list[str] | None = None) -> list[PartitionPlace]:
    """Return all partitions, or the existing partitions among ``names``."""
    registered: list[Any]
    if names is None:
        registered = client.get_partitions(table.name.db, table.name.table, -1)
    else:
        registered = client.get_partitions_by_names(table.name.db, table.name.table, names) if names else []
    return [
        PartitionPlace(
            partition_name(table, list(partition.values)),
            _without_default(partition.values),
            partition.sd.location,
            _stored_otherwise(table, partition),
        )
        for partition in registered
    ]


def _stored_otherwise(table: AcidTable, partition: Any) -> FileFormat | None:
    """Return the format of a partition's files; None: as the table's. Raises: InvalidOperationError for other types."""
    if table.kind is not TableKind.INSERT_ONLY:
        return None
    stored_as = table.stored_as(partition.sd)
    if isinstance(stored_as, HiveStorage):
        own = [(column.name.lower(), column.type) for column in partition.sd.cols or ()]
        require_same_types(partition_name(table, list(partition.values)), stored_as, own)
    return None if stored_as == table.file_format else stored_as


def _without_default(values: Iterable[str]) -> tuple[str | None, ...]:
    return tuple(None if value in ("", DEFAULT_PARTITION) else value for value in values)
