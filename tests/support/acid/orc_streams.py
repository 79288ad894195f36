"""Where the bytes of each column lie in an ORC file, read off its tail: for tests that destroy some of them."""

import zlib
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import NamedTuple

import pyorc

from metastore.acid.protobuf import fields, number_field

_STATISTICS = 7


class Stream(NamedTuple):
    """Bytes of a column in a stripe: values, lengths, which are NULL, or the index of its row groups."""

    column: int
    start: int
    end: int


def columns(path: Path, names: Collection[str]) -> set[int]:
    """Return the numbers of columns by their names (``row.inside.deep``) and of the structs around them."""
    with path.open("rb") as file:
        schema = pyorc.Reader(file).schema
    parts = (name.split(".") for name in names)
    return {0} | {schema.find_column_id(".".join(part[:depth])) for part in parts for depth in range(1, len(part) + 1)}


def destroy(path: Path, kept: Collection[int]) -> int:
    """Make the bytes of all other columns unreadable: no chunk has the length that it claims. How many streams."""
    content = bytearray(path.read_bytes())
    doomed = [stream for stream in streams(bytes(content)) if stream.column not in kept]
    for stream in doomed:
        content[stream.start:stream.end] = b"\xff" * (stream.end - stream.start)
    path.write_bytes(content)
    path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
    return len(doomed)


def without_statistics(path: Path) -> None:
    """Write a file's footer anew, without what it says of each column."""
    content = path.read_bytes()
    end = len(content) - 1 - content[-1]
    postscript = {field.number: field for field in fields(content[end:-1])}
    told = _inflated(content[end - postscript[1].value:end])
    footer = b"".join(field.raw for field in fields(told) if field.number != _STATISTICS)
    footer = (len(footer) << 1 | 1).to_bytes(3, "little") + footer
    tail = number_field(1, len(footer)) + b"".join(field.raw for number, field in postscript.items() if number != 1)
    path.write_bytes(content[:end - postscript[1].value] + footer + tail + bytes([len(tail)]))
    path.with_name(f".{path.name}.crc").unlink(missing_ok=True)


def streams(content: bytes) -> Iterator[Stream]:
    """All streams of a file that zlib has compressed; empty streams have no bytes."""
    end = len(content) - 1 - content[-1]
    tail = {field.number: field.value for field in fields(content[end:-1])}
    assert tail[2] == 1, "not zlib"
    for stripe in (field.value for field in fields(_inflated(content[end - tail[1]:end])) if field.number == 3):
        place = {field.number: field.value for field in fields(stripe)}
        start = place[1]
        footer = start + place[2] + place[3]
        for stream in (field.value for field in fields(_inflated(content[footer:footer + place[4]])) if field.number == 1):
            values = {field.number: field.value for field in fields(stream)}
            if values.get(3, 0):
                yield Stream(values.get(2, 0), start, start + values[3])
            start += values.get(3, 0)


def _inflated(chunks: bytes) -> bytes:
    """Decompress chunks: the header of each has three bytes, with its length and whether it is compressed."""
    inflated, at = b"", 0
    while at < len(chunks):
        header = int.from_bytes(chunks[at:at + 3], "little")
        part = chunks[at + 3:at + 3 + (header >> 1)]
        inflated += part if header & 1 else zlib.decompress(part, -15)
        at += 3 + (header >> 1)
    return inflated
