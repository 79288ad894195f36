"""A reader of a call's body, field by field.

Rules: an error is a sentence that names the field; no value is guessed. Values are counted before any is made: a few
bytes may hold so many that they take ten times the memory.
"""

import gc
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, TypeVar

from metastore.errors import InvalidInputError
from metastore.ids import TableName, split_table_name, table_name

Choice = TypeVar("Choice", bound=Enum)
_MOST = 2**63 - 1
_SHOWN = 100
MOST_VALUES = 1_000_000
_BEGINS_A_VALUE = (b",", b"[", b"{", b"\\")
"""The bytes of which each value has one; escapes count, since each is a text of its own while a text is read."""


@dataclass(frozen=True)
class Body:
    """A JSON object. ``place``: the path to it in the whole body, for errors."""

    fields: Mapping[str, Any]
    place: str = ""

    @classmethod
    def of(cls, content: bytes) -> "Body":
        """Parse a whole body. Raises: InvalidInputError."""
        if sum(map(content.count, _BEGINS_A_VALUE)) > MOST_VALUES:
            raise InvalidInputError(f"The body has more than {MOST_VALUES} values: send it in parts.")
        collecting = gc.isenabled()
        gc.disable()  # The collector doubles the time of a large body.
        try:
            fields = json.loads(content)
        except (ValueError, RecursionError) as error:  # A text that is not UTF-8 is a ValueError, too.
            raise InvalidInputError(f"The body is not JSON: {error}.") from None
        finally:
            if collecting:
                gc.enable()
        if not isinstance(fields, dict):
            raise InvalidInputError("The body must be a JSON object, like {}.")
        return cls(fields)

    def has(self, name: str) -> bool:
        """Return True if the field is present and not null."""
        return self.fields.get(name) is not None

    def text(self, name: str, default: str | None = None) -> str:
        """Return a text. Raises, as all of these: InvalidInputError for another kind, or a missing field."""
        return str(self._value(name, str, "a text", default))

    def number(self, name: str, default: int | None = None) -> int:
        """Return a whole number that is not negative."""
        value = self._value(name, int, "a whole number", default)
        if isinstance(value, bool) or not 0 <= value <= _MOST:
            raise self._wrong(name, f"a whole number from 0 to {_MOST}")
        return int(value)

    def flag(self, name: str) -> bool:
        """Return True or False; False if it is absent."""
        return bool(self._value(name, bool, "true or false", False))  # noqa: FBT003 - the default

    def texts(self, name: str) -> list[str]:
        """Return a list of texts; empty if it is absent."""
        texts = self.values(name)
        if not all(isinstance(text, str) for text in texts):
            raise self._wrong(name, "a list of texts")
        return texts

    def values(self, name: str) -> list[Any]:
        """Return a list of any values; empty if it is absent."""
        return list(self._value(name, list, "a list", []))

    def bodies(self, name: str) -> Iterator["Body"]:
        """Yield the objects of a list; none if it is absent."""
        for place, fields in enumerate(self.values(name)):
            if not isinstance(fields, dict):
                raise self._wrong(name, "a list of objects")
            yield Body(fields, f"{self.place}{name}[{place}].")

    def body(self, name: str) -> "Body":
        """Return an object of the body."""
        return Body(self._value(name, dict, "an object", None), f"{self.place}{name}.")

    def choice(self, name: str, kind: type[Choice], default: Choice | None = None) -> Choice:
        """Return the member of an enumeration that the field names."""
        if default is not None and not self.has(name):
            return default
        text = self.text(name)
        if text not in kind.__members__:
            raise self._wrong(name, f"one of {', '.join(kind.__members__)}")
        return kind[text]

    def table(self, name: str = "table") -> TableName:
        """Return a table, as ``db.table``."""
        try:
            db, table = split_table_name(self.text(name))
        except ValueError:
            db, table = None, ""
        if db is None:
            raise self._wrong(name, "a table's name, like db.table")
        return table_name(db, table)

    def db_and_table(self) -> TableName:
        """Return the table that the fields ``db`` and ``table`` name."""
        db, table = self.text("db"), self.text("table")
        if not db or not table:
            raise InvalidInputError(f"{self.place}db and {self.place}table must not be empty.")
        return table_name(db, table)

    def _value(self, name: str, kind: type, called: str, default: Any) -> Any:
        value = self.fields.get(name)
        if value is None:
            value = default
        if value is None:
            raise InvalidInputError(f"{self.place}{name} is missing: it must be {called}.")
        if not isinstance(value, kind):
            raise self._wrong(name, called)
        return value

    def _wrong(self, name: str, called: str) -> InvalidInputError:
        return InvalidInputError(f"{self.place}{name} must be {called}, not {_shown(self.fields[name])}.")


def _shown(value: Any) -> str:
    """Show a value in few words, however large or deep it is."""
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return "a list" if any(isinstance(one, dict | list) for one in value) else json.dumps(value[:_SHOWN])[:_SHOWN]
    return json.dumps(value[:_SHOWN] if isinstance(value, str) else value)[:_SHOWN]
