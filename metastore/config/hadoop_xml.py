"""Hadoop's XML files of settings: <configuration><property><name/><value/>, later properties winning.

Rule: what Hadoop takes is taken, or refused with a sentence. A document with a DOCTYPE is refused: with entities a
small file can become large, or show another file.
"""

import xml.parsers.expat
from collections.abc import Mapping
from pathlib import Path

from metastore.errors import InvalidInputError

_INCLUDE, _FALLBACK = "xi:include", "xi:fallback"


def read(content: bytes, path: Path) -> dict[str, str]:
    """Return the values by key. Raises: InvalidInputError naming the file and its fault."""
    return _File((path,)).read(content)


class _File:
    """A file being read. ``paths``: the file, behind those that include it."""

    def __init__(self, paths: tuple[Path, ...]) -> None:
        self._paths, self._path = paths, paths[-1]
        self._tags, self._text, self._property = list[str](), list[str](), dict[str, str]()
        self._missing: Path | None = None
        self._values: dict[str, str] = {}

    def read(self, content: bytes) -> dict[str, str]:
        parser = xml.parsers.expat.ParserCreate()
        parser.StartDoctypeDeclHandler, parser.CharacterDataHandler = self._refuse, self._text.append
        parser.StartElementHandler, parser.EndElementHandler = self._start, self._end
        try:
            parser.Parse(content, True)  # noqa: FBT003 - expat's own signature
        except xml.parsers.expat.ExpatError as error:
            raise InvalidInputError(f"The configuration file {self._path} is not XML: {error}.") from error
        return self._values

    def _refuse(self, *_: object) -> None:
        raise InvalidInputError(
            f"The configuration file {self._path} has a DOCTYPE: remove it, entities are not expanded."
        )

    def _start(self, tag: str, attributes: Mapping[str, str]) -> None:
        self._tags.append(tag)
        self._text.clear()
        if tag == "property":
            self._property = dict(attributes)  # Hadoop 3 takes <property name="..." value="..."/>, too.
        elif tag == _INCLUDE:
            self._include(self._path.parent / attributes.get("href", "").removeprefix("file://"))
        elif tag == _FALLBACK:
            self._missing = None

    def _end(self, tag: str) -> None:
        self._tags.pop()
        if tag in {"name", "value"} and self._tags[-1:] == ["property"]:
            self._property[tag] = "".join(self._text).strip()
        elif tag == "property" and self._property.keys() >= {"name", "value"}:
            self._values[self._property["name"]] = self._property["value"]
        elif tag == _INCLUDE and self._missing:
            raise InvalidInputError(
                f"The configuration file {self._path} includes {self._missing}, which is not there."
            )

    def _include(self, other: Path) -> None:
        """Take in another file; with a fallback it may be missing. A file that includes itself counts as missing."""
        if other in self._paths or not other.is_file():
            self._missing = other
        else:
            self._values.update(_File((*self._paths, other)).read(other.read_bytes()))
