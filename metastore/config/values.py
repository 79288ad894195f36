"""The syntax of settings' texts and their meaning: Hive's value syntax, read and written in one place.

Rule: a kind reads text or raises ValueError; ``expected`` completes the sentence "expected ...". Formatting is the
inverse of reading, in the form that Hive's own tools print (``300s``).
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Any

from metastore.config.jdbc import ONLY_POSTGRES, libpq_url

_DURATION = re.compile(r"\s*(-?\d+)\s*([a-zA-Z]*)\s*")
_SIZE = re.compile(r"\s*(\d+)\s*([a-zA-Z]*)\s*")

# The spellings that HiveConf.unitFor knows.
_UNITS = {
    "us": timedelta(microseconds=1),
    "usec": timedelta(microseconds=1),
    "microsecond": timedelta(microseconds=1),
    "ms": timedelta(milliseconds=1),
    "msec": timedelta(milliseconds=1),
    "millisecond": timedelta(milliseconds=1),
    "s": timedelta(seconds=1),
    "sec": timedelta(seconds=1),
    "second": timedelta(seconds=1),
    "m": timedelta(minutes=1),
    "min": timedelta(minutes=1),
    "minute": timedelta(minutes=1),
    "h": timedelta(hours=1),
    "hour": timedelta(hours=1),
    "d": timedelta(days=1),
    "day": timedelta(days=1),
}
_SIZES = {"": 1, "b": 1, "k": 2**10, "kb": 2**10, "m": 2**20, "mb": 2**20, "g": 2**30, "gb": 2**30}


@dataclass(frozen=True)
class ValueKind:
    """A kind of value: how it is parsed, formatted and described."""

    expected: str
    parse: Callable[[str], Any]
    format: Callable[[Any], str] = str


def duration(unit: str, low: timedelta | None = None, high: timedelta | None = None) -> ValueKind:
    """Return the kind of a time span between the bounds, both included.

    A plain number counts in ``unit``, as in Hive for this key.
    """

    def parse(text: str) -> timedelta:
        match = _DURATION.fullmatch(text)
        if not match:
            raise ValueError(text)
        name = match[2].lower() or unit
        step = _UNITS.get(name) or _UNITS.get(name.removesuffix("s"))
        if step is None:
            raise ValueError(text)
        try:
            value = int(match[1]) * step
        except OverflowError as error:
            raise ValueError(text) from error
        if (low is not None and value < low) or (high is not None and value > high):
            raise ValueError(text)
        return value

    def write(value: timedelta) -> str:
        return f"{value // _UNITS[unit]}{unit}" if not value % _UNITS[unit] else f"{value // _UNITS['us']}us"

    bounds = ([] if low is None else [f"at least {write(low)}"]) + ([] if high is None else [f"at most {write(high)}"])
    expected = f"a number with a unit us, ms, s, m, h or d (300s, 5m, 12h), or a plain number of {unit}"
    return ValueKind(f"{expected}, {' and '.join(bounds)}" if bounds else expected, parse, write)


def integer(low: int | None = None, high: int | None = None) -> ValueKind:
    """Return a whole number between the bounds, both included."""

    def parse(text: str) -> int:
        value = int(text)
        if (low is not None and value < low) or (high is not None and value > high):
            raise ValueError(text)
        return value

    bounds = [f"at least {low}"] * (low is not None) + [f"at most {high}"] * (high is not None)
    return ValueKind(" ".join(["a whole number", " and ".join(bounds)]).strip(), parse)


_NATURAL = integer(0)


def _size(text: str) -> int:
    match = _SIZE.fullmatch(text)
    if not match or match[2].lower() not in _SIZES:
        raise ValueError(text)
    return int(match[1]) * _SIZES[match[2].lower()]


def _flag(text: str) -> bool:
    return (
        {"true": True, "false": False}[text.strip().lower()] if text.strip().lower() in {"true", "false"} else _no(text)
    )


def _no(text: str) -> Any:
    raise ValueError(text)


def _fraction(text: str) -> float:
    value = float(text)
    return value if 0 <= value < float("inf") else _no(text)


def _user_or_network(word: str) -> str | IPv4Network | IPv6Network:
    try:
        return ip_network(word)
    except ValueError:
        return word


def _number(word: str) -> tuple[str, int]:
    name, _, number = word.partition("=")
    return name.strip() or _no(word), _NATURAL.parse(number)


def _storage_classes(word: str) -> tuple[str, str, str]:
    match word.split(":"):
        case [str(input_format), str(output_format), str(serde)] if input_format and output_format and serde:
            return input_format, output_format, serde
    raise ValueError(word)


def choice(*allowed: str) -> ValueKind:
    """Return a word of a few, in any case."""

    def parse(text: str) -> str:
        word = text.strip().lower()
        return word if word in allowed else _no(text)

    return ValueKind("one of " + ", ".join(allowed), parse)


SIZE = ValueKind("a number of bytes, or one with a unit kb, mb or gb", _size)
FLAG = ValueKind("true or false", _flag, lambda value: str(value).lower())
FRACTION = ValueKind("a number not below 0, for example 0.1", _fraction)
TEXT = ValueKind("text", lambda text: text.strip())
WORDS = ValueKind(
    "words separated by commas", lambda text: tuple(word.strip() for word in text.split(",") if word.strip()), ",".join
)
NUMBERS = ValueKind(
    "names with whole numbers separated by commas, NAME=N",
    lambda text: tuple(dict(map(_number, filter(None, map(str.strip, text.split(","))))).items()),
    lambda numbers: ",".join(f"{name}={number}" for name, number in numbers),
)
STORAGE_CLASSES = ValueKind(
    "input format, output format and SerDe of one way to store, joined by colons; several separated by commas",
    lambda text: tuple(_storage_classes(word.strip()) for word in text.split(",") if word.strip()),
    lambda classes: ",".join(map(":".join, classes)),
)
NETWORKS = ValueKind(
    "addresses or networks separated by commas (10.0.0.7, 10.1.0.0/16, fd00::/8)",
    lambda text: tuple(ip_network(word.strip()) for word in text.split(",") if word.strip()),
    lambda networks: ",".join(map(str, networks)),
)
CLIENTS = ValueKind(
    "users, addresses and networks separated by commas (hive, 10.0.0.7, 10.1.0.0/16)",
    lambda text: tuple(_user_or_network(word.strip()) for word in text.split(",") if word.strip()),
    lambda clients: ",".join(map(str, clients)),
)
DATABASE_URL = ValueKind(
    "postgresql://user@host:5432/name, or Hive's jdbc:postgresql://host:5432/name?sslmode=...&currentSchema=... with "
    f"parameters that libpq has, too; {ONLY_POSTGRES}",
    libpq_url,
)
