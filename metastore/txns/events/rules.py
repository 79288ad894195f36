"""An event as its writer builds it; the log adds its number, its place and its time."""

from collections.abc import Mapping
from typing import NamedTuple


class Event(NamedTuple):
    """An event: its type, the object that readers filter by, and the keys of its message."""

    type: str
    catalog: str
    db: str | None
    table: str | None
    message: Mapping[str, object]
