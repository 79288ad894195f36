"""Counting the files of tables and partitions, outside of PostgreSQL transactions (Hive's ``hive.stats.autogather``).

Rule: a directory that was just made has no files and is not listed; one that cannot be listed has no statistics.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from metastore.catalog.model import Parameters, Table
from metastore.catalog.rules import basic_statistics as rules
from metastore.catalog.rules.partitions import Partition, PartitionDraft
from metastore.catalog.service.directories import Directories
from metastore.errors import MetaError
from metastore.telemetry.logs import get_logger

_log = get_logger(__name__)
P = TypeVar("P", Partition, PartitionDraft)


@dataclass(frozen=True)
class BasicStatistics:
    """The statistics of directories. ``gather``: the setting that allows it."""

    directories: Directories
    gather: bool

    def created(self, draft: Table, table: Table, context: Mapping[str, str], made: Collection[str]) -> Table:
        """Return a new table with the statistics of its directory, unless the directory is among those ``made``.

        ``draft``: the table as the client sent it.
        """
        unwanted = not rules.are_wanted(draft.parameters, context)
        if unwanted or table.location in made or rules.are_complete(table.parameters):
            return table
        return self.altered(table, context)

    def altered(self, table: Table, context: Mapping[str, str]) -> Table:
        """Return an unpartitioned table with the statistics of its directory, as it is to be stored."""
        if not self.are_due(table, context):
            return table
        found = self._counted(table.location or "")
        return replace(table, parameters=rules.completed(table.parameters, found, context))

    def are_due(self, table: Table, context: Mapping[str, str]) -> bool:
        """Return True if the files of a table's directory are to be counted."""
        if not (self.gather and table.location and rules.has_files(table)):
            return False
        return not table.partition_keys and rules.are_wanted(table.parameters, context)

    def added(
        self, table: Table, partitions: Sequence[Partition], context: Mapping[str, str], made: Iterable[str]
    ) -> list[Partition]:
        """Return new partitions with the statistics of directories that were there before."""
        if not self.gather or not rules.has_files(table):
            return list(partitions)
        new = set(made)
        return [
            partition if partition.location is None or partition.location in new else self._of(partition, context)
            for partition in partitions
        ]

    def missing(
        self, table: Table, drafts: Sequence[PartitionDraft], context: Mapping[str, str]
    ) -> list[PartitionDraft]:
        """Return partitions to alter with the statistics that they lack."""
        if not self.gather or not rules.has_files(table):
            return list(drafts)
        return [self._of(draft, context) if rules.are_missing(draft.parameters, context) else draft for draft in drafts]

    def renewed(self, table: Table, context: Mapping[str, str], old: Partition, new: Partition) -> Partition:
        """Return an altered partition, marked as accurate or not if its statistics have changed."""
        if not self.gather or not rules.has_files(table):
            return new
        return replace(new, parameters=rules.renewed(old.parameters, new.parameters, context))

    def _of(self, partition: P, context: Mapping[str, str]) -> P:
        known = rules.are_complete(partition.parameters) or partition.location is None
        found = {} if known else self._counted(partition.location or "")
        return replace(partition, parameters=rules.completed(partition.parameters, found, context))

    def _counted(self, location: str) -> Parameters:
        roots = self.directories.files.roots
        if roots is not None and not roots.covers(location):
            return {}
        try:
            listed = self.directories.listing(location)
        except MetaError as error:
            _log.warning("statistics_not_counted", location=location, reason=str(error))
            return {}
        return rules.counted((entry.path, entry.size) for entry in listed if not entry.is_dir)
