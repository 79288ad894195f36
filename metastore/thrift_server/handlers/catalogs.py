"""RPCs about catalogs."""

from __future__ import annotations

from metastore.catalog.service.databases import DatabaseService
from metastore.errors import InvalidObjectError
from metastore.thrift_gen.hive_metastore import ttypes
from metastore.thrift_server.convert.catalog import catalog_from_thrift, catalog_to_thrift, required_struct
from metastore.thrift_server.dispatch.call import Call


def _lower(name: str | None) -> str:
    return (name or "").strip().lower()


class CatalogHandlers:
    """Catalogs: namespaces of databases (Hive 3 and later)."""

    def __init__(self, databases: DatabaseService) -> None:
        self._databases = databases

    def create_catalog(self, _call: Call, request: ttypes.CreateCatalogRequest) -> None:
        """Add a catalog."""
        if not required_struct(request.catalog, "catalog").locationUri:
            raise InvalidObjectError("You must specify a path for the catalog")
        self._databases.create_catalog(catalog_from_thrift(request.catalog))

    def alter_catalog(self, _call: Call, request: ttypes.AlterCatalogRequest) -> None:
        """Change the location or the description of a catalog."""
        self._databases.alter_catalog(_lower(request.name), catalog_from_thrift(request.newCat))

    def get_catalog(self, _call: Call, request: ttypes.GetCatalogRequest) -> ttypes.GetCatalogResponse:
        """Return a catalog."""
        return ttypes.GetCatalogResponse(catalog_to_thrift(self._databases.get_catalog(_lower(request.name))))

    def get_catalogs(self, _call: Call) -> ttypes.GetCatalogsResponse:
        """Return the names of all catalogs."""
        return ttypes.GetCatalogsResponse(self._databases.get_catalogs())

    def drop_catalog(self, _call: Call, request: ttypes.DropCatalogRequest) -> None:
        """Remove an empty catalog."""
        self._databases.drop_catalog(_lower(request.name), if_exists=bool(request.ifExists))
