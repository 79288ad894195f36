"""The vectors of times and of conversions in the files beside this one, for Python, Spark, Hive's reader and its writer."""

from datetime import datetime
from pathlib import Path
from typing import NamedTuple

_HERE = Path(__file__).parent


class TimeVector(NamedTuple):
    """A time, and why no ORC file can hold it, or ""."""

    text: str
    refusal: str

    @property
    def time(self) -> datetime:
        """As Python has it."""
        return datetime.fromisoformat(self.text)

    @property
    def is_day_refused(self) -> bool:
        """Whether the date alone cannot be stored."""
        return self.refusal == "unnamed"


class ConversionVector(NamedTuple):
    """What readers show of a value in a file of type ``old``, whose table has ``new`` now; "": NULL."""

    old: str
    new: str
    value: str
    shown: str


def time_vectors() -> list[TimeVector]:
    """All times."""
    return [TimeVector(*parts, *[""] * (2 - len(parts))) for parts in _parts("time_vectors.txt")]


def conversion_vectors() -> list[ConversionVector]:
    """All conversions."""
    return [ConversionVector(*parts) for parts in _parts("conversion_vectors.txt")]


def _parts(name: str) -> list[list[str]]:
    lines = (_HERE / name).read_text(encoding="utf-8").splitlines()
    return [[part.strip() for part in line.split("|")] for line in lines if line and not line.startswith("#")]
