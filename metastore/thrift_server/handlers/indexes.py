"""Indexes, which only Hive 2.3 had and which later metastores gave up: there are none."""

from metastore.errors import InvalidObjectError, InvalidOperationError, NoSuchObjectError
from metastore.thrift_gen.hive_metastore.ttypes import Index, Table
from metastore.thrift_server.call import Call, immediate, refused

GONE = "Indexes are not supported: Hive removed them in 3.0."
_refused = refused(GONE)


class IndexHandlers:
    """Lists are empty, which is the truth; everything else says that indexes are gone."""

    @_refused
    @immediate
    def get_indexes(self, call: Call, db_name: str, tbl_name: str, max_indexes: int) -> list[Index]:
        return []

    @_refused
    @immediate
    def get_index_names(self, call: Call, db_name: str, tbl_name: str, max_indexes: int) -> list[str]:
        return []

    @_refused
    @immediate
    def get_index_by_name(self, call: Call, db_name: str, tbl_name: str, index_name: str) -> Index:
        raise NoSuchObjectError(GONE)

    @_refused
    @immediate
    def drop_index_by_name(self, call: Call, db: str, table: str, name: str, deletes: bool) -> bool:  # noqa: FBT001
        raise NoSuchObjectError(GONE)

    @_refused
    @immediate
    def add_index(self, call: Call, new_index: Index, index_table: Table) -> Index:
        raise InvalidObjectError(GONE)

    @_refused
    @immediate
    def alter_index(self, call: Call, dbname: str, base_tbl_name: str, idx_name: str, new_idx: Index) -> None:
        raise InvalidOperationError(GONE)
