"""Every table of the catalog side, in the same MetaData as the transaction side.

Rules: names are lower case, sorted by bytes (Hive's listing order) and protected by foreign keys, so that a table
cannot be created in a database that is being dropped. A storage descriptor is one JSON object with Thrift's field names
**without its location**, which has a column of its own. Partitions of a table mostly have equal descriptors: each
distinct descriptor is stored once per table in ``partition_descriptors`` under its digest, and a partition's row holds
the digest. A descriptor row is never changed, only replaced by pointing elsewhere.
"""

from sqlalchemy import (
    ARRAY,
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    DateTime,
    ForeignKey,
    ForeignKeyConstraint,
    Identity,
    Index,
    Integer,
    LargeBinary,
    Sequence,
    SmallInteger,
    Table,
    Text,
    TextClause,
    UniqueConstraint,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB

from metastore.db.tables import metadata

_Name = Text(collation="C")


def _parameters() -> Column[object]:
    return Column("parameters", JSONB, nullable=False, server_default=text("'{}'"))


def _int(name: str, default: str = "0") -> Column[int]:
    return Column(name, Integer, nullable=False, server_default=text(default))


def _place(column: str) -> TextClause:
    """Return a location as bytes, which sort together below a directory; PostgreSQL's indexes hold no longer values."""
    return text(f'"left"({column} COLLATE "C", 500)')


# The formatter is off: a column stays on its line.
# fmt: off

catalogs = Table(
    "catalogs", metadata,
    Column("name", _Name, primary_key=True),
    Column("location", Text, nullable=False), Column("description", Text), _int("create_time"),
    Column("given_location", Text))

databases = Table(
    "databases", metadata,
    Column("id", BigInteger, Identity(), primary_key=True),
    Column("catalog", _Name, ForeignKey("catalogs.name"), nullable=False), Column("name", _Name, nullable=False),
    Column("description", Text), Column("location", Text, nullable=False), Column("managed_location", Text),
    _parameters(), Column("owner", Text), Column("owner_type", SmallInteger), _int("create_time"),
    Column("connector", Text), Column("remote_name", Text),
    Index("databases_place_idx", _place("location")), Index("databases_managed_place_idx", _place("managed_location")),
    UniqueConstraint("catalog", "name"))

# "wire": keys and descriptor in Thrift's binary protocol, the descriptor without its end. A trigger fills it; null in
# rows older than the column. "meta" is always null: only release 0.2 reads it, and it goes with release_0_2.sql.
tables = Table(
    "tables", metadata,
    Column("id", BigInteger, Identity(), primary_key=True),
    Column("catalog", _Name, nullable=False), Column("db", _Name, nullable=False),
    Column("name", _Name, nullable=False),
    Column("type", Text, nullable=False), Column("owner", Text),
    Column("owner_type", SmallInteger, nullable=False, server_default=text("1")),
    _int("create_time"), _int("last_access_time"), _int("retention"),
    Column("location", Text), Column("sd", JSONB, nullable=False),
    Column("partition_keys", JSONB, nullable=False, server_default=text("'[]'")), _parameters(),
    Column("view_original_text", Text), Column("view_expanded_text", Text),
    Column("rewrite_enabled", Boolean, nullable=False, server_default=text("false")),
    Column("creation_metadata", JSONB),
    Column("write_id", BigInteger, nullable=False, server_default=text("-1")),
    Column("wire", LargeBinary), Column("meta", LargeBinary),
    UniqueConstraint("catalog", "db", "name"),
    Index("tables_place_idx", _place("location")),
    Index("tables_materialized_views_idx", "catalog", "db", "name",
          postgresql_where=text("type = 'MATERIALIZED_VIEW'")),
    ForeignKeyConstraint(["catalog", "db"], ["databases.catalog", "databases.name"]))

partition_descriptors = Table(
    "partition_descriptors", metadata,
    Column("table_id", BigInteger, ForeignKey("tables.id", ondelete="CASCADE"), primary_key=True),
    Column("digest", Text, primary_key=True),
    Column("sd", JSONB, nullable=False))

# "name" is canonical (metastore.partition_names): it makes a partition unique. "values" is as sent. "wire": the
# other columns in Thrift's binary protocol. A trigger fills it; it is null in rows older than the column.
partitions = Table(
    "partitions", metadata,
    Column("table_id", BigInteger, ForeignKey("tables.id", ondelete="CASCADE"), primary_key=True),
    Column("name", _Name, primary_key=True),
    Column("values", ARRAY(_Name), nullable=False),
    _int("create_time"), _int("last_access_time"),
    Column("location", Text), Column("digest", Text), _parameters(),
    Column("write_id", BigInteger, nullable=False, server_default=text("-1")),
    Column("wire", LargeBinary),
    Index("partitions_place_idx", _place("location")),
    ForeignKeyConstraint(["table_id", "digest"], ["partition_descriptors.table_id", "partition_descriptors.digest"]))

functions = Table(
    "functions", metadata,
    Column("catalog", _Name, primary_key=True), Column("db", _Name, primary_key=True),
    Column("name", _Name, primary_key=True),
    Column("class_name", Text, nullable=False), Column("owner", Text), Column("owner_type", SmallInteger),
    Column("type", SmallInteger, nullable=False, server_default=text("1")), _int("create_time"),
    Column("resource_uris", JSONB, nullable=False, server_default=text("'[]'")),
    ForeignKeyConstraint(["catalog", "db"], ["databases.catalog", "databases.name"]))

# "partition" is the partition's name, "" for statistics of the table. "data" is the ColumnStatisticsData union; a
# trigger keeps in "wire" the struct that a client gets of a column. "write_id": the last write id that the
# statistics count; NULL if it is unknown. "is_whole": true if no lower write id was open when they were counted.
column_statistics = Table(
    "column_statistics", metadata,
    Column("table_id", BigInteger, ForeignKey("tables.id", ondelete="CASCADE"), primary_key=True),
    Column("partition", _Name, primary_key=True, server_default=text("''")),
    Column("column", _Name, primary_key=True), Column("engine", Text, primary_key=True),
    Column("type", Text), Column("data", JSONB, nullable=False), _int("last_analyzed"),
    Column("write_id", BigInteger), Column("is_whole", Boolean, nullable=False, server_default=text("false")),
    Column("wire", LargeBinary))

# One row for each column of a constraint. A foreign key goes with the table that it refers to; the partial index allows
# a table only one primary key. "column" is null for a CHECK of the whole row.
table_constraints = Table(
    "table_constraints", metadata,
    Column("table_id", BigInteger, ForeignKey("tables.id", ondelete="CASCADE"), primary_key=True),
    Column("name", _Name, primary_key=True), Column("position", Integer, primary_key=True),
    Column("kind", Text, nullable=False), Column("column", _Name), Column("value", Text),
    Column("is_enabled", Boolean, nullable=False), Column("is_validated", Boolean, nullable=False),
    Column("is_relied_on", Boolean, nullable=False),
    Column("parent_id", BigInteger, ForeignKey("tables.id", ondelete="CASCADE"), index=True),
    Column("parent_column", _Name), Column("parent_key", _Name), Column("update_rule", Integer),
    Column("delete_rule", Integer),
    CheckConstraint("kind IN ('primary_key', 'foreign_key', 'unique', 'not_null', 'default', 'check')", name="kind"),
    CheckConstraint("(kind = 'foreign_key') = (parent_id IS NOT NULL)", name="parent"),
    Index("table_constraints_one_primary_key", "table_id", "position", unique=True,
          postgresql_where=text("kind = 'primary_key'")))

# A directory that is moved or removed: announced first, deleted when its files are in their place. The owner renews the
# row while it works; otherwise another process settles it (metastore.catalog.service.moves, ADR 40).
directory_changes = Table(
    "directory_changes", metadata,
    Column("id", BigInteger, Identity(), primary_key=True),
    Column("table_id", BigInteger, nullable=False), Column("source", Text, nullable=False), Column("target", Text),
    Column("phase", Text, nullable=False), Column("owner", Text, nullable=False),
    Column("renewed_at", DateTime(timezone=True), nullable=False),
    Column("abandoned_at", DateTime(timezone=True)),
    Column("kept", Boolean, nullable=False, server_default=text("false")),
    CheckConstraint("phase IN ('announced', 'begun', 'done', 'undoing', 'undone')", name="phase"))

# Drops and renames in progress in an upstream metastore, of tables that have history here, with the table's next write
# id. The process that works on one keeps its row locked (metastore.catalog.service.upstream_changes, ADR 50).
upstream_changes = Table(
    "upstream_changes", metadata,
    Column("id", BigInteger, Identity(), primary_key=True),
    Column("kind", Text, nullable=False),
    Column("catalog", Text, nullable=False), Column("db", Text, nullable=False), Column("table", Text, nullable=False),
    Column("partition", Text, nullable=False, server_default=text("''")),
    Column("identity", BigInteger, nullable=False), Column("mark", BigInteger, nullable=False),
    Column("new_db", Text), Column("new_table", Text), Column("new_partition", Text),
    Column("noted_at", DateTime(timezone=True), nullable=False),
    CheckConstraint("kind IN ('drop_table', 'drop_partition', 'rename_table', 'rename_partition')", name="kind"))

# The previous release used this for moves; now it is unused.
directory_moves = Table(
    "directory_moves", metadata,
    Column("id", BigInteger, Identity(), primary_key=True),
    Column("source", Text, nullable=False), Column("target", Text, nullable=False),
    Column("table_id", BigInteger, nullable=False),
    Column("partition", _Name, nullable=False, server_default=text("''")),
    Index(None, "table_id"))

# An object of a rare concept: the struct of Hive's interface as JSON, under its names. "catalog" and "db": the database
# that it needs and goes with, if any (metastore.catalog.rare, ADR 138).
rare_objects = Table(
    "rare_objects", metadata,
    Column("kind", Text, primary_key=True), Column("key", ARRAY(_Name), primary_key=True),
    Column("body", JSONB, nullable=False), Column("changed_at", DateTime(timezone=True), nullable=False),
    Column("catalog", _Name), Column("db", _Name),
    Index(None, "catalog", "db", postgresql_where=text("db IS NOT NULL")),
    ForeignKeyConstraint(["catalog", "db"], ["databases.catalog", "databases.name"], ondelete="CASCADE"))

rare_object_number = Sequence("rare_object_number", metadata=metadata)
