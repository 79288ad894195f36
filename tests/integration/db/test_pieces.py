"""Long lists that are read at the same time."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, BrokenBarrierError
from typing import NamedTuple

import pytest

from metastore.db import pieces
from metastore.db.pieces import AT_A_TIME, UNLIMITED, Sizes


class Numbers(NamedTuple):
    """Some numbers in a row."""

    size: int
    last: int


class Meeting:
    """A list of ten numbers, whose pieces behind the first want to meet so many of other readers."""

    def __init__(self, count: int) -> None:
        self.barrier = Barrier(count, timeout=0.5)

    def count(self, _run: object, _limit: int) -> int:
        return 10

    def piece(self, _asked: object, after: int | None, most: int) -> Numbers:
        at = 0 if after is None else after
        if at:
            self.barrier.wait()
        return Numbers(min(most, 10 - at), at + min(most, 10 - at))


def test_only_so_many_long_lists_are_read_at_a_time(database):
    def read(listing):
        with pieces.read(database, listing, UNLIMITED, Sizes(5, 5, 5)) as found:
            return sum(piece.size for piece in found)

    with ThreadPoolExecutor(AT_A_TIME + 1) as threads:
        assert list(threads.map(read, [Meeting(1)] * (AT_A_TIME + 1))) == [10] * (AT_A_TIME + 1)
        assert list(threads.map(read, [Meeting(AT_A_TIME)] * AT_A_TIME)) == [10] * AT_A_TIME
        with pytest.raises(BrokenBarrierError):
            list(threads.map(read, [Meeting(AT_A_TIME + 1)] * (AT_A_TIME + 1)))
        assert read(Meeting(1)) == 10, "a failure gives its turn back"
