"""Places in the trash of Hadoop: dropped data waits there for a time, if ``fs.trash.interval`` says so.

Rule: a root has its own trash, as Hadoop's encryption zones have. Data moves to ``<root>/.Trash/<user>/Current``, below
its whole path. ``Current`` gets the name of a time later, and is removed when that time is too long ago.
"""

import re
from datetime import UTC, datetime, timedelta

from metastore.catalog.rules import locations

TRASH, CURRENT = ".Trash", "Current"
_CHECKPOINT = "%y%m%d%H%M%S"
_ODD = re.compile(r"^\.+|[^A-Za-z0-9._-]")


def place_in_trash(location: str, root: str, user: str) -> str | None:
    """Return the place of dropped data in a user's trash; None: it is in the trash already."""
    if locations.is_below(location, f"{root}/{TRASH}"):
        return None
    return f"{root}/{TRASH}/{_ODD.sub('_', user)}/{CURRENT}{_path(location)}"


def is_in_trash(location: str, target: str | None) -> bool:
    """Return True if a change's target is the place of ``location`` in a trash."""
    return target is not None and f"/{TRASH}/" in target and target.endswith(f"/{CURRENT}{_path(location)}")


def checkpoint(now: datetime) -> str:
    """Return the name that ``Current`` gets."""
    return now.astimezone(UTC).strftime(_CHECKPOINT)


def is_expired(name: str, now: datetime, interval: timedelta) -> bool:
    """Return True for a checkpoint that is older than the interval; other names are nobody's to remove."""
    try:
        made = datetime.strptime(name, _CHECKPOINT).replace(tzinfo=UTC)
    except ValueError:
        return False
    return now - made > interval


def _path(location: str) -> str:
    return location.removeprefix(locations.file_system(location))
