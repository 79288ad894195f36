"""The directory-selection cases of ``directory_vectors.txt``, for our own rules and for Hive's."""

import re
from dataclasses import dataclass, field
from pathlib import Path

from metastore.acid.names import BaseName, DeltaName, parse_directory
from metastore.acid.snapshots import CompactorWriteIdList, ValidTxnList, ValidWriteIdList

NOT_ENOUGH_HISTORY = "not enough history"


@dataclass(frozen=True)
class DirectoryVector:
    """A listing, two lists and what Hive makes of them. All names are padded as Hive writes them."""

    name: str
    children: tuple[str, ...]
    with_metadata: frozenset[str]
    write_ids: ValidWriteIdList
    txns: ValidTxnList
    in_hive_2: bool
    error: bool = False
    base: str | None = None
    deltas: tuple[str, ...] = ()
    originals: tuple[str, ...] = ()
    obsolete: frozenset[str] = frozenset()
    aborted: frozenset[str] = frozenset()
    mixed_aborts: bool = False
    text: str = field(default="", compare=False)


def directory_vectors() -> list[DirectoryVector]:
    """All cases."""
    lines = (Path(__file__).parent / "directory_vectors.txt").read_text().splitlines()
    return [_vector(line) for line in lines if line and not line.startswith("#")]


def _vector(line: str) -> DirectoryVector:
    name, children, lists, selected, other = (part.strip() for part in line.split("|"))
    base = re.search(r"base (\S+?)(?:;|$)", selected)
    return DirectoryVector(
        name=name.rstrip("+"),
        children=tuple(_padded(child.rstrip("*")) for child in children.split()),
        with_metadata=frozenset(_padded(child[:-1]) for child in children.split() if child.endswith("*")),
        write_ids=_write_ids(lists),
        txns=_txns(lists),
        in_hive_2=not name.endswith("+"),
        error=NOT_ENOUGH_HISTORY in selected,
        base=_padded(base[1]) if base else None,
        deltas=_names(selected, "deltas"),
        originals=_names(other, "originals"),
        obsolete=frozenset(_names(other, "obsolete")),
        aborted=frozenset(_names(other, "aborted")),
        mixed_aborts="mixed aborts" in other,
        text=line,
    )


def _names(text: str, kind: str) -> tuple[str, ...]:
    match = re.search(rf"(?:^|; ){kind} ([^;]*)", text)
    return tuple(_padded(name) for name in match[1].split()) if match else ()


def _padded(name: str) -> str:
    parsed = parse_directory(name)
    return str(parsed) if isinstance(parsed, BaseName | DeltaName) else name


def _ids(text: str, letter: str) -> tuple[int, ...]:
    match = re.search(rf"{letter}\[([0-9,]*)\]", text)
    return tuple(int(number) for number in match[1].split(",")) if match else ()


def _write_ids(lists: str) -> ValidWriteIdList:
    text = lists.partition(";")[0]
    if text.startswith("C:"):
        return CompactorWriteIdList("db.t", int(text[2:]))
    opened, aborted = _ids(text, "o"), _ids(text, "a")
    invalid = tuple(sorted({*opened, *aborted}))
    return ValidWriteIdList("db.t", int(text.split()[0]), min(opened, default=None), invalid, frozenset(aborted))


def _txns(lists: str) -> ValidTxnList:
    text = lists.partition(";")[2].strip()
    if not text:
        return ValidTxnList.everything()
    opened, aborted = _ids(text, "o"), _ids(text, "a")
    exceptions = tuple(sorted({*opened, *aborted}))
    return ValidTxnList(int(text.split()[0][1:]), min(opened, default=None), exceptions, frozenset(aborted))
