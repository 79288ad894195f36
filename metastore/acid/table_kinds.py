"""Kinds of tables by their properties ``transactional`` and ``transactional_properties``, as a catalog stores them.

Rule: nothing else reads these properties of a stored table. The database has the same rule in
``metastore/catalog/store/is_transactional.sql``. Source: Hive's TxnUtils.isTransactionalTable, isAcidTable.
"""

from collections.abc import Mapping
from enum import StrEnum

TRANSACTIONAL = "transactional"
PROPERTIES = "transactional_properties"
INSERT_ONLY = "insert_only"


class TableKind(StrEnum):
    """The kinds of tables, by the meaning of their directories."""

    FULL_ACID = "full ACID"
    INSERT_ONLY = "insert-only"
    PLAIN = "not transactional"


def table_kind(parameters: Mapping[str, str]) -> TableKind:
    """Return the kind of a stored table with these properties."""
    if parameters.get(TRANSACTIONAL, "").lower() != "true":
        return TableKind.PLAIN
    return TableKind.INSERT_ONLY if parameters.get(PROPERTIES, "").lower() == INSERT_ONLY else TableKind.FULL_ACID


def is_transactional(parameters: Mapping[str, str]) -> bool:
    """Return True if a stored table takes part in transactions."""
    return table_kind(parameters) is not TableKind.PLAIN


def is_insert_only(parameters: Mapping[str, str]) -> bool:
    """Return True if a stored table is transactional without row-level changes."""
    return table_kind(parameters) is TableKind.INSERT_ONLY


def is_full_acid(parameters: Mapping[str, str]) -> bool:
    """Return True if rows of a stored table can be updated and deleted."""
    return table_kind(parameters) is TableKind.FULL_ACID
