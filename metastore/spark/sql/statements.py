"""Hive's statements that Spark has no words for, as values. Module ``parsing`` makes them of SQL text."""

from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from metastore.client.declared_constraints import Declaration


class TableRef(NamedTuple):
    """A table as the statement names it; ``db`` is None where it leaves the database out."""

    db: str | None
    table: str

    def __str__(self) -> str:
        """As it is written."""
        return f"{self.db}.{self.table}" if self.db else self.table


def dotted(text: str) -> TableRef:
    """A table's name as it is written: ``db.table`` or ``table``, quoted or not."""
    db, _, table = text.replace("`", "").lower().rpartition(".")
    return TableRef(db or None, table)


@dataclass(frozen=True)
class Convert:
    """ALTER TABLE ... SET TBLPROPERTIES with ``transactional`` among the properties."""

    table: TableRef
    properties: dict[str, str]


@dataclass(frozen=True)
class AddConstraints:
    """ALTER TABLE ... ADD CONSTRAINT, or CHANGE COLUMN with constraints; ``column``: (name, type) that it repeats."""

    table: TableRef
    constraints: tuple[Declaration, ...]
    column: tuple[str, str] | None = None


@dataclass(frozen=True)
class DropConstraint:
    """ALTER TABLE ... DROP CONSTRAINT."""

    table: TableRef
    name: str


@dataclass(frozen=True)
class Compact:
    """ALTER TABLE ... [PARTITION (...)] COMPACT 'kind' [AND WAIT] and so on. ``order``: the words from ORDER BY on."""

    table: TableRef
    partition: dict[str, str]
    kind: str
    wait: bool
    buckets: int | None = None
    order: str | None = None
    pool: str | None = None
    properties: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class ShowCompactions:
    """SHOW COMPACTIONS; ``order``: the words behind ORDER BY."""

    id: int | None = None
    database: str | None = None
    table: TableRef | None = None
    partition: dict[str, str] = field(default_factory=dict)
    pool: str | None = None
    kind: str | None = None
    state: str | None = None
    order: str | None = None
    limit: int | None = None


@dataclass(frozen=True)
class AbortCompactions:
    """ABORT COMPACTIONS id ..."""

    ids: tuple[int, ...]


@dataclass(frozen=True)
class Show:
    """SHOW TRANSACTIONS | LOCKS."""

    what: str


@dataclass(frozen=True)
class AbortTransactions:
    """ABORT TRANSACTIONS id ..."""

    txn_ids: tuple[int, ...]


Statement: TypeAlias = (
    Convert | AddConstraints | DropConstraint | Compact | ShowCompactions | AbortCompactions | Show | AbortTransactions
)
