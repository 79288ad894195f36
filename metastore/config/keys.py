"""The rows of the table of keys, of which each concept's settings have some as fields of a frozen dataclass.

Rule: a row is all that a key needs (Hive's name, kind, default as Hive writes it, one line of help), and nothing else
in the project knows the name of a key. ``metastore.`` spellings are derived (``names``). Services receive the settings
of their own concept only. The defaults are Hive's, except where a help text says "Hive: ...".
"""

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from metastore.config.values import ValueKind


@dataclass(frozen=True)
class Key:
    """One key: how it is spelled, read and explained."""

    name: str
    kind: ValueKind
    default: str
    help: str
    aliases: tuple[str, ...] = ()
    secret: bool = False
    without_effect: str = ""
    """Why it is accepted and changes nothing; "" if it has an effect."""

    @property
    def names(self) -> tuple[str, ...]:
        """Every accepted spelling: Hive's, that under metastore.*, and those of other versions."""
        spellings = dict.fromkeys((self.name, *self.aliases))
        for name in list(spellings):
            if name.startswith("hive.metastore."):
                spellings["metastore." + name.removeprefix("hive.metastore.")] = None
            elif name.startswith("hive."):
                spellings["metastore." + name.removeprefix("hive.")] = None
            elif name.startswith("metastore."):
                spellings["hive." + name] = None
                spellings["hive." + name.removeprefix("metastore.")] = None
        return tuple(spellings)


def key(kind: ValueKind, name: str, default: str, text: str, *aliases: str, secret: bool = False) -> Any:
    """Return a dataclass field that is one row of the table of keys."""
    return dataclasses.field(
        default=kind.parse(default), metadata={"key": Key(name, kind, default, text, aliases, secret)}
    )


def inert(kind: ValueKind, name: str, default: str, reason: str, *aliases: str) -> Any:
    """Return a field for a key of Hive that is read, checked and told to clients, and changes nothing here."""
    return dataclasses.field(
        default=kind.parse(default), metadata={"key": Key(name, kind, default, "", aliases, without_effect=reason)}
    )


def keys_of(settings: type) -> Iterator[tuple[str, Key]]:
    """Yield the fields of a concept's settings with their keys."""
    for field in dataclasses.fields(settings):
        yield field.name, field.metadata["key"]
