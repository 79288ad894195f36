"""A run of a script: finds the method of each command's first word."""

from tests.support.scripts.catalog_words import CatalogWords
from tests.support.scripts.lock_words import LockWords
from tests.support.scripts.names import Names
from tests.support.scripts.txn_words import TxnWords
from tests.support.scripts.write_id_words import WriteIdWords


class Story(Names, TxnWords, WriteIdWords, LockWords, CatalogWords):
    """The names of a script, and its commands."""

    def __init__(self, world):
        super().__init__()
        self.world, self.types = world, world.types
        self.snapshots, self.highest, self.views = {}, {}, {}

    def tell(self, line):
        """Run a command and return the lines of its answer."""
        words = line.partition("#")[0].split()
        if not words:
            return []
        command, *arguments = words
        return getattr(self, f"_{command}")(arguments)

    def _settings(self, _):
        return []
