"""The catalog over Thrift, as the integration tests have it."""

from tests.integration.catalog.conftest import catalog_settings, files, hive

__all__ = ["catalog_settings", "files", "hive"]
