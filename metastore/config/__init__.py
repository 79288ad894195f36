"""Settings: Hive's keys and value syntax, parsed and checked once, frozen, a dataclass per concept."""

from metastore.config.abilities import AbilitySettings
from metastore.config.catalog import CatalogSettings
from metastore.config.clients import ClientSettings
from metastore.config.compaction import CompactionSettings
from metastore.config.database import DatabaseSettings
from metastore.config.inert import InertSettings
from metastore.config.limits import LimitSettings
from metastore.config.locks import LockSettings
from metastore.config.planner import PlannerSettings
from metastore.config.rare import RareSettings
from metastore.config.security import TlsSettings
from metastore.config.server import LogSettings, ServerSettings
from metastore.config.settings import Settings, build
from metastore.config.txns import EventSettings, TxnSettings
from metastore.config.upstream import UpstreamSettings

__all__ = [
    "AbilitySettings",
    "CatalogSettings",
    "ClientSettings",
    "CompactionSettings",
    "DatabaseSettings",
    "EventSettings",
    "InertSettings",
    "LimitSettings",
    "LockSettings",
    "LogSettings",
    "PlannerSettings",
    "RareSettings",
    "ServerSettings",
    "Settings",
    "TlsSettings",
    "TxnSettings",
    "UpstreamSettings",
    "build",
]
