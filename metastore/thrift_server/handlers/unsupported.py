"""Methods that Hive's own server has on PostgreSQL without an effect: they are answered as it answers them.

Source: CAT-R7.
"""

from __future__ import annotations

from metastore.errors import MetaError, NoSuchObjectError
from metastore.thrift_gen.hive_metastore import ttypes
from metastore.thrift_server.dispatch.call import Call, immediate, refused

_no_footers = refused("footers of files are kept nowhere, as in Hive's server on PostgreSQL; clients read the files.")
_no_namespaces = refused("no namespace of properties is declared, as in Hive's server without plugins.")
_no_types = refused("Hive's server has not implemented it either.")


class UnsupportedHandlers:
    """Footers of files, which clients are told not to expect, namespaces of properties, and the list of types."""

    @_no_footers
    @immediate
    def get_file_metadata(self, _call: Call, _req: ttypes.GetFileMetadataRequest) -> ttypes.GetFileMetadataResult:
        """Return that nothing is supported."""
        return ttypes.GetFileMetadataResult(metadata={}, isSupported=False)

    @_no_footers
    @immediate
    def get_file_metadata_by_expr(
        self, _call: Call, _req: ttypes.GetFileMetadataByExprRequest
    ) -> ttypes.GetFileMetadataByExprResult:
        """Return that nothing is supported."""
        return ttypes.GetFileMetadataByExprResult(metadata={}, isSupported=False)

    @_no_footers
    @immediate
    def put_file_metadata(self, _call: Call, _req: ttypes.PutFileMetadataRequest) -> ttypes.PutFileMetadataResult:
        """Do nothing."""
        return ttypes.PutFileMetadataResult()

    @_no_footers
    @immediate
    def clear_file_metadata(self, _call: Call, _req: ttypes.ClearFileMetadataRequest) -> ttypes.ClearFileMetadataResult:
        """Do nothing: there is none to clear."""
        return ttypes.ClearFileMetadataResult()

    @_no_footers
    @immediate
    def cache_file_metadata(self, _call: Call, _req: ttypes.CacheFileMetadataRequest) -> ttypes.CacheFileMetadataResult:
        """Return that it is not supported."""
        return ttypes.CacheFileMetadataResult(isSupported=False)

    @_no_namespaces
    @immediate
    def get_properties(self, _call: Call, req: ttypes.PropertyGetRequest) -> ttypes.PropertyGetResponse:
        """Raise an error: there is no namespace."""
        raise NoSuchObjectError(f"There is no namespace {req.nameSpace} of properties: none is declared")

    @_no_namespaces
    @immediate
    def set_properties(self, _call: Call, req: ttypes.PropertySetRequest) -> bool:
        """Raise an error: there is no namespace."""
        raise NoSuchObjectError(f"There is no namespace {req.nameSpace} of properties: none is declared")

    @_no_types
    @immediate
    def get_type_all(self, _call: Call, _name: str | None) -> dict[str, ttypes.Type]:
        """Refuse the call."""
        raise MetaError("get_type_all is not implemented, by Hive neither: ask for a type with get_type")
