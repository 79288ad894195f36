"""The data of the tables: one file per element, named by its write id, as delta directories would be.

A writer puts its elements there before it commits; a reader lists the key and keeps what its snapshot allows.
"""

from collections.abc import Iterable
from pathlib import Path

from metastore.acid.snapshots import ValidWriteIdList


class Deltas:
    """Elements below a directory that every process of the run shares."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def write(self, key: str, write_id: int, element: str) -> None:
        place = self.root / key
        place.mkdir(parents=True, exist_ok=True)
        (place / f"{write_id:09d}.{element}").touch(exist_ok=False)

    def remove(self, write_id: int, keys: Iterable[str]) -> None:
        """Remove what an aborted transaction wrote, as its owner does."""
        for key in keys:
            for path in (self.root / key).glob(f"{write_id:09d}.*"):
                path.unlink()

    def read(self, key: str, valid: ValidWriteIdList, own_write_id: int | None = None) -> list[str]:
        """Elements whose write ids are valid, in their order, without the reader's own."""
        found = []
        place = self.root / key
        for name in sorted(path.name for path in place.iterdir()) if place.exists() else ():
            write_id, _, element = name.partition(".")
            if int(write_id) != own_write_id and valid.is_valid(int(write_id)):
                found.append(element)
        return found
