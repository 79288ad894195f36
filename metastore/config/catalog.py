"""Settings of the catalog."""

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Self

from metastore.config import values
from metastore.config.keys import inert, key
from metastore.config.values import duration, integer

_S = duration("s")
_H = duration("h")


# A row of the table of keys stays together.
# fmt: off


@dataclass(frozen=True)
class CatalogSettings:
    """The catalog: where tables live, and how names and filters behave."""

    warehouse: str = key(
        values.TEXT, "hive.metastore.warehouse.dir", "",
        "Directory of managed tables; empty: `warehouse` below the data directory.")
    default_fs: str = key(
        values.TEXT, "fs.defaultFS", "",
        "File system of directories that settings name without a scheme; empty: the local disk. What a client names "
        "without one is on the file system of its database. Hive: on this one.", "fs.default.name")
    external_warehouse: str = key(
        values.TEXT, "hive.metastore.warehouse.external.dir", "",
        "Directory of external tables; empty: as managed ones.")
    more_roots: tuple[str, ...] = key(
        values.WORDS, "metastore.warehouse.roots", "",
        "More directories, besides the two warehouses, in which this service may make, move, empty and remove what "
        "clients name. Hive: no such key; its server touches every directory that it can reach.")
    storage_classes: tuple[tuple[str, str, str], ...] = key(
        values.STORAGE_CLASSES, "metastore.storage.classes", "",
        "More classes by which insert-only tables may be stored, INPUT_FORMAT:OUTPUT_FORMAT:SERDE separated by commas; "
        "every reader and every compaction loads them. Hive: no such key; any class of any jar.")
    readable: tuple[str, ...] = key(
        values.WORDS, "metastore.warehouse.readable", "",
        "More directories, besides the roots, in which a planner may look at tables' files: those of external tables "
        "and of an upstream. Hive: no such key.")
    schemes: tuple[str, ...] = key(
        values.WORDS, "metastore.warehouse.schemes",
        "file, hdfs, viewfs, s3, s3a, s3n, gs, abfs, abfss, wasb, wasbs",
        "Schemes of locations at which this service looks, makes, moves or removes something; a location with another "
        "one is refused before anything is opened. Hive: no such key; all that Hadoop knows.")
    files_timeout: timedelta = key(
        duration("s", timedelta(seconds=1)), "metastore.files.timeout", "60s",
        "How long a file system may take to say whether something is there, to make a directory or to read a small "
        "file; ten times as long for listing a whole directory tree. What a call moves, empties or removes is "
        "not cut off. Hive: no such key.")
    files_threads: int = key(
        integer(2), "metastore.files.threads", "64",
        "Questions to and changes of file systems that are under way at a time, at most half of them at one host. "
        "They take no place among metastore.server.worker.threads. Hive: no such key.")
    cm_enabled: bool = key(
        values.FLAG, "hive.repl.cm.enabled", "false",
        "Files of managed tables that go are kept for replicas, in databases with `repl.source.for`.")
    cmroot: str = key(
        values.TEXT, "hive.repl.cmrootdir", "",
        "Where they are kept, in the file system of the tables; empty: `.cmroot` in the warehouse. "
        "Hive: /user/<name>/cmroot/.")
    cm_retain: timedelta = key(_H, "hive.repl.cm.retain", "240h", "How long.")
    cm_interval: timedelta = key(
        _S, "hive.repl.cm.interval", "3600s", "Pause between removals of what was kept longer than that.")
    trash_interval: timedelta = key(
        duration("m", timedelta(0)), "fs.trash.interval", "0",
        "How long dropped data of tables, partitions and databases stays in `.Trash/<user>` of its root; 0: it is "
        "removed at once, as where a client says `PURGE` or a table `auto.purge`.")
    default_partition_name: str = key(
        values.TEXT, "hive.exec.default.partition.name", "__HIVE_DEFAULT_PARTITION__",
        "Partition value that stands for null or the empty string.", "metastore.default.partition.name")
    create_as_acid: bool = key(
        values.FLAG, "hive.create.as.acid", "false", "New managed tables are transactional when nothing else is said.")
    gather_statistics: bool = key(
        values.FLAG, "hive.stats.autogather", "true",
        "Count the files of plain tables and partitions (`numFiles`, `totalSize`) where Hive does: created or added "
        "with files, altered without `DO_NOT_UPDATE_STATS`.")
    partition_name_whitelist: str = key(
        values.TEXT, "hive.metastore.partition.name.whitelist.pattern", "",
        "Regular expression that partition values must match.")
    partition_inherit_table_properties: str = key(
        values.TEXT, "hive.metastore.partition.inherit.table.properties", "",
        "Table parameters that new partitions start with: names separated by commas, or `*` for all.")
    disallow_incompatible_column_changes: bool = key(
        values.FLAG, "hive.metastore.disallow.incompatible.col.type.changes", "true",
        "Refuse column type changes that existing data cannot be read with.")
    limit_partition_request: int = key(
        integer(-1), "hive.metastore.limit.partition.request", "-1",
        "Most partitions that one request may ask for; -1: no limit.", "hive.metastore.client.limit.partition.request")
    default_catalog: str = inert(
        values.TEXT, "metastore.catalog.default", "hive",
        "The default catalog is always hive; Impala asks for its name.")

    def on_default_fs(self) -> Self:
        """Return the settings with directories on ``default_fs`` where they have no scheme."""
        store = self.default_fs.rstrip("/")

        def placed(directory: str) -> str:
            return f"{store}{directory}" if directory.startswith("/") else directory

        return replace(
            self,
            warehouse=placed(self.warehouse),
            external_warehouse=placed(self.external_warehouse),
            cmroot=placed(self.cmroot),
            more_roots=tuple(map(placed, self.more_roots)),
            readable=tuple(map(placed, self.readable)),
        )
