"""The settings in force: every concept's, with the source of each value.

Rule: later sources win: the defaults, then the files in the order given, then the environment, then the command line.
Within one source a key may be given once, in any of its spellings. A bad value stops the start whatever its source is.
"""

import dataclasses
import difflib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from metastore import object_stores
from metastore.config.abilities import AbilitySettings
from metastore.config.catalog import CatalogSettings
from metastore.config.clients import ClientSettings
from metastore.config.compaction import CompactionSettings, of_pools
from metastore.config.database import DatabaseSettings
from metastore.config.hooks import HookSettings, require_known
from metastore.config.identity import IdentitySettings
from metastore.config.inert import InertSettings
from metastore.config.keys import Key, keys_of
from metastore.config.limits import LimitSettings
from metastore.config.locks import LockSettings
from metastore.config.planner import PlannerSettings
from metastore.config.rare import RareSettings
from metastore.config.security import TlsSettings, require_honoured
from metastore.config.server import LogSettings, ServerSettings
from metastore.config.txns import EventSettings, TxnSettings
from metastore.config.upstream import UpstreamSettings
from metastore.errors import ConfigValueSecurityError, InvalidInputError
from metastore.object_stores import ObjectStores
from metastore.redaction import MASK, is_secret, redacted

PROXY_USER = "hadoop.proxyuser."
"""The prefix of the settings that say who may act for whom: they have the users' names in them."""


class SettingsSource(NamedTuple):
    """The keys of a source. ``foreign``: it may hold keys that are not ours (a hive-site.xml has hundreds)."""

    name: str
    values: Mapping[str, str]
    foreign: bool = False


class Shown(NamedTuple):
    """One line of ``metastore config show``."""

    key: str
    value: str
    source: str
    effect: str


@dataclass(frozen=True)
class Settings:
    """All settings, by concept."""

    txns: TxnSettings = TxnSettings()
    locks: LockSettings = LockSettings()
    events: EventSettings = EventSettings()
    compaction: CompactionSettings = CompactionSettings()
    catalog: CatalogSettings = CatalogSettings()
    rare: RareSettings = RareSettings()
    abilities: AbilitySettings = AbilitySettings()
    server: ServerSettings = ServerSettings()
    tls: TlsSettings = TlsSettings()
    identity: IdentitySettings = IdentitySettings()
    upstream: UpstreamSettings = UpstreamSettings()
    limits: LimitSettings = LimitSettings()
    planner: PlannerSettings = PlannerSettings()
    database: DatabaseSettings = DatabaseSettings()
    log: LogSettings = LogSettings()
    clients: ClientSettings = ClientSettings()
    hooks: HookSettings = HookSettings()
    inert: InertSettings = InertSettings()
    stores: ObjectStores = field(default_factory=ObjectStores)
    foreign: Mapping[str, str] = field(default_factory=dict)
    origins: Mapping[str, str] = field(default_factory=dict)

    def lookup(self, name: str) -> str | None:
        """Return the text in force for a key in any spelling, as Hive writes it; None when it is not set at all.

        Secrets in it are masked. Raises: ConfigValueSecurityError for passwords and the like.
        """
        row = ROWS.get(name)
        if row is None:
            text = self.stores.keys.get(name, self.foreign.get(name))
            if text is not None and is_secret(name):
                raise ConfigValueSecurityError(f"The value of {name} is not shown to clients.")
            return None if text is None else redacted(text)
        if row.is_secret:
            raise ConfigValueSecurityError(f"The value of {name} is not shown to clients.")
        return redacted(row.text(self))

    def shown(self) -> Iterator[Shown]:
        """Yield every key with its value and source; secrets are masked."""
        for row in sorted(set(ROWS.values()), key=lambda row: row.key.name):
            text = row.text(self)
            yield Shown(
                row.key.name,
                MASK if row.is_secret and text else redacted(text),
                self.origins.get(row.key.name, "default"),
                f"none: {row.key.without_effect}" if row.key.without_effect else "",
            )
        for name, text in sorted(self.stores.keys.items()):
            shown = MASK if is_secret(name) and text else redacted(text)
            yield Shown(name, shown, self.origins[name], object_stores.effect(name))


class Row(NamedTuple):
    """One key and the field of ``Settings`` that holds its value."""

    concept: str
    attribute: str
    key: Key

    @property
    def is_secret(self) -> bool:
        """True if its value is hidden: its row or any of its names says so."""
        return self.key.secret or any(map(is_secret, self.key.names))

    def text(self, settings: Settings) -> str:
        """Return the value in force, as text."""
        return self.key.kind.format(getattr(getattr(settings, self.concept), self.attribute))


def _rows() -> Iterator[tuple[str, Row]]:
    for concept in dataclasses.fields(Settings):
        if concept.name in {"stores", "foreign", "origins"}:
            continue
        for attribute, key in keys_of(type(concept.default)):
            for name in key.names:
                yield name, Row(concept.name, attribute, key)


ROWS: Mapping[str, Row] = dict(_rows())


def concept_of(name: str | None) -> str | None:
    """Return the field of `Settings` that a key in any spelling belongs to; None: it is no key of ours."""
    row = ROWS.get(name or "")
    return row.concept if row else None


def build(sources: Iterable[SettingsSource]) -> Settings:
    """Put the sources together, the last winning.

    Raises: InvalidInputError naming the key, the value, its place and the expected values.
    """
    changed: dict[str, dict[str, Any]] = {}
    stores: dict[str, str] = {}
    foreign: dict[str, str] = {}
    origins: dict[str, str] = {}
    for source in sources:
        seen: dict[str, tuple[str, str]] = {}
        for name, text in of_pools(source.values).items():
            require_honoured(name, text, source.name)
            row = ROWS.get(name)
            if row is None and object_stores.is_key(name):
                stores[name], origins[name] = text, source.name
                continue
            if row is None:
                if not source.foreign and not name.startswith(PROXY_USER):
                    raise InvalidInputError(_unknown(name, text, source.name))
                foreign[name] = text
                continue
            before = seen.setdefault(row.key.name, (name, text))
            if before[1] != text:
                raise InvalidInputError(
                    f"{source.name} gives one setting twice, as {before[0]} and as {name}: keep one."
                )
            changed.setdefault(row.concept, {})[row.attribute] = _parsed(row.key, name, text, source.name)
            origins[row.key.name] = source.name
    concepts = {name: dataclasses.replace(getattr(Settings(), name), **values) for name, values in changed.items()}
    if "catalog" in concepts:
        concepts["catalog"] = concepts["catalog"].on_default_fs()
    settings = Settings(**concepts, stores=_usable(stores, origins), foreign=foreign, origins=origins)
    require_known(_classes(settings), settings.hooks.may_be_missing)
    return settings


def _usable(keys: Mapping[str, str], origins: Mapping[str, str]) -> ObjectStores:
    stores = ObjectStores(keys)
    try:
        stores.require_usable()
    except ValueError as error:
        name = next((name for name in sorted(keys, key=len, reverse=True) if name in str(error)), "")
        raise InvalidInputError(f"{error}{f' ({origins[name]})' if name else ''}.") from error
    return stores


def _classes(settings: Settings) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """Yield the keys that name Java classes, with their sources and the classes."""
    named = {attribute: row for attribute, row in keys_of(HookSettings) if row.without_effect}
    of_hooks = [(row.name, getattr(settings.hooks, attribute)) for attribute, row in named.items()]
    for name, classes in (*of_hooks, *settings.events.named_classes()):
        yield name, settings.origins.get(name, "default"), classes


def _parsed(key: Key, name: str, text: str, source: str) -> Any:
    try:
        return key.kind.parse(text)
    except (ValueError, OverflowError) as error:
        shown = MASK if key.secret or is_secret(name) else repr(redacted(text))
        raise InvalidInputError(f"{name} = {shown} ({source}) is not valid: expected {key.kind.expected}.") from error


def _unknown(name: str, text: str, source: str) -> str:
    close = difflib.get_close_matches(name, ROWS, n=1, cutoff=0.6)
    secret = is_secret(name) or (close and ROWS[close[0]].key.secret)
    said = f"{name} = {MASK if secret else repr(redacted(text))} ({source}) is not a setting"
    if not close:
        return f"{said}; `metastore config show` lists them all."
    return f"{said}. The closest is {close[0]}, which expects {ROWS[close[0]].key.kind.expected}."
