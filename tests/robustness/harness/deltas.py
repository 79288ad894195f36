"""The data of the tables: one file per element, in directories as Hive's ACID tables have them.

A writer puts its elements into the delta of its write id before it commits; a reader reads what the product's selection
of directories says, and of a directory that holds others' too the elements that its snapshot allows. Bases and wider
deltas come from compactions (``compact_job``); the Cleaner removes what is not needed any more.
"""

import shutil
from collections.abc import Iterable
from pathlib import Path

from metastore.acid.names import DeltaName
from metastore.acid.snapshots import RangeState, ValidTxnList, ValidWriteIdList
from metastore.acid.state import BaseDirectory, DeltaDirectory, acid_state
from metastore.files import Files


class Deltas:
    """Elements below a directory that every process of the run shares."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def write(self, key: str, write_id: int, element: str) -> None:
        """As a writer that does not know what became of its transaction: the Cleaner may remove beside it."""
        place = self.root / key / str(DeltaName(write_id, write_id, 0))
        while True:
            place.mkdir(parents=True, exist_ok=True)
            try:
                (place / f"{write_id:09d}.{element}").touch(exist_ok=False)
            except FileNotFoundError:
                continue
            return

    def remove(self, write_id: int, keys: Iterable[str]) -> None:
        """Remove what an aborted transaction wrote, as its owner does."""
        for key in keys:
            shutil.rmtree(self.root / key / str(DeltaName(write_id, write_id, 0)), ignore_errors=True)

    def read(self, key: str, valid: ValidWriteIdList, txns: ValidTxnList, own_write_id: int | None = None) -> list[str]:
        """Elements whose write ids are valid, in their order, without the reader's own.

        Raises: NotEnoughHistoryError.
        """
        state = acid_state(Files().listing(str(self.root / key)), valid, txns, lambda _path: "{}")
        directories = [*([state.base] if state.base else []), *state.deltas]
        found = sorted(name for directory in directories for name in elements(directory, valid))
        return [element for write_id, _, element in (name.partition(".") for name in found) if int(write_id) != own_write_id]


def elements(directory: BaseDirectory | DeltaDirectory, valid: ValidWriteIdList) -> list[str]:
    """Return the names of the files to read of a directory: ``write id.element``."""
    names = [file.path.rpartition("/")[2] for file in directory.files]
    if isinstance(directory, BaseDirectory) or directory.visible is RangeState.ALL:
        return names
    return [name for name in names if valid.is_valid(int(name.partition(".")[0]))]
