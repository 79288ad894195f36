"""RPCs about catalogs."""

from typing import Any

from metastore.catalog.service.databases import DatabaseService
from metastore.errors import InvalidObjectError
from metastore.thrift_gen.hive_metastore import ttypes
from metastore.thrift_server.call import Call
from metastore.thrift_server.convert_catalog import catalog_from_thrift, catalog_to_thrift, required_struct


def _lower(name: str | None) -> str:
    return (name or "").strip().lower()


class CatalogHandlers:
    """Catalogs: namespaces of databases (Hive 3 and later)."""

    def __init__(self, databases: DatabaseService) -> None:
        self._databases = databases

    def create_catalog(self, _call: Call, request: Any) -> None:
        if not required_struct(request.catalog, "catalog").locationUri:
            raise InvalidObjectError("You must specify a path for the catalog")
        self._databases.create_catalog(catalog_from_thrift(request.catalog))

    def alter_catalog(self, _call: Call, request: Any) -> None:
        self._databases.alter_catalog(_lower(request.name), catalog_from_thrift(request.newCat))

    def get_catalog(self, _call: Call, request: Any) -> Any:
        return ttypes.GetCatalogResponse(catalog_to_thrift(self._databases.get_catalog(_lower(request.name))))

    def get_catalogs(self, _call: Call) -> Any:
        return ttypes.GetCatalogsResponse(self._databases.get_catalogs())

    def drop_catalog(self, _call: Call, request: Any) -> None:
        self._databases.drop_catalog(_lower(request.name), if_exists=bool(request.ifExists))
