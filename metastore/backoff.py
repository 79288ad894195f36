"""Delays that double up to a ceiling, as Hive's DbLockManager waits for locks."""

from collections.abc import Iterator
from datetime import timedelta


def doubling(first: timedelta, ceiling: timedelta, attempts: int) -> Iterator[timedelta]:
    """Yield ``attempts`` delays: ``first``, twice that, ... never above ``ceiling``."""
    delay = first
    for _ in range(attempts):
        yield min(delay, ceiling)
        delay = min(delay * 2, ceiling)
