"""The house-keeper of the trash: what is in it for longer than ``fs.trash.interval`` is removed.

Rule: a directory that an object of the catalog has stays, wherever it is.
"""

from dataclasses import dataclass
from datetime import timedelta

from metastore.catalog.rules import locations, trash
from metastore.catalog.service.moves import DirectoryMoves
from metastore.places.store import select_users
from metastore.telemetry.logs import get_logger

_log = get_logger(__name__)


@dataclass(frozen=True)
class TrashKeeper:
    """The trash below each root."""

    moves: DirectoryMoves
    interval: timedelta

    def tidy(self) -> int:
        """Name ``Current`` after the time, and remove what is too old; return the number of removed directories.

        Raises: OSError.
        """
        files, db = self.moves.files, self.moves.db
        with db.begin(durable=False) as pg:
            now = pg.now
        gone = []
        for root in () if files.roots is None else files.roots.directories:
            top = f"{locations.qualified(root, 'file:').rstrip('/')}/{trash.TRASH}"
            for of_user in (f"{top}/{user}" for user in files.children(top)):
                names = files.children(of_user)
                gone += [f"{of_user}/{name}" for name in names if trash.is_expired(name, now, self.interval)]
                if trash.CURRENT in names:
                    self._checkpoint(f"{of_user}/{trash.CURRENT}", f"{of_user}/{trash.checkpoint(now)}")
        with db.begin() as pg:
            removals = self.moves.announce_removals(pg, 0, gone)
        self.moves.remove(removals)
        return len(gone)

    def _checkpoint(self, current: str, name: str) -> None:
        with self.moves.held(current):
            with self.moves.db.begin() as pg:
                users = [user.name for user in select_users(pg, [current])]
            if users:
                _log.warning("directory_kept", location=current, used_by=users[0])
            else:
                self.moves.files.rename(current, name)
