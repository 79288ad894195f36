"""Indexes, which only Hive 2.3 had and later metastores removed: there are none."""

from __future__ import annotations

from metastore.errors import InvalidObjectError, InvalidOperationError, NoSuchObjectError
from metastore.thrift_gen.hive_metastore.ttypes import Index, Table
from metastore.thrift_server.dispatch.call import Call, immediate, refused

GONE = "Indexes are not supported: Hive removed them in 3.0."
_refused = refused(GONE)


class IndexHandlers:
    """Empty lists of indexes, which are true; every other call is refused."""

    @_refused
    @immediate
    def get_indexes(self, _call: Call, _db_name: str, _tbl_name: str, _max_indexes: int) -> list[Index]:
        """Return an empty list."""
        return []

    @_refused
    @immediate
    def get_index_names(self, _call: Call, _db_name: str, _tbl_name: str, _max_indexes: int) -> list[str]:
        """Return an empty list."""
        return []

    @_refused
    @immediate
    def get_index_by_name(self, _call: Call, _db_name: str, _tbl_name: str, _index_name: str) -> Index:
        """Raise an error: there is none."""
        raise NoSuchObjectError(GONE)

    @_refused
    @immediate
    def drop_index_by_name(self, _call: Call, _db: str, _table: str, _name: str, _deletes: bool) -> bool:
        """Raise an error: there is none."""
        raise NoSuchObjectError(GONE)

    @_refused
    @immediate
    def add_index(self, _call: Call, _new_index: Index, _index_table: Table) -> Index:
        """Refuse the call."""
        raise InvalidObjectError(GONE)

    @_refused
    @immediate
    def alter_index(self, _call: Call, _dbname: str, _base_tbl_name: str, _idx_name: str, _new_idx: Index) -> None:
        """Refuse the call."""
        raise InvalidOperationError(GONE)
