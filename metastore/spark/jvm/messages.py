"""Messages between Python and our Java classes, as JSON: ``Messages.java`` is the other side."""

import json
from typing import Any


def to_java(value: Any) -> str:
    """Lists and dicts of texts, numbers and truth values, for ``Messages.list`` and ``Messages.map``."""
    return json.dumps(value)


def from_java(text: str) -> Any:
    """The value of a text from ``Messages.text`` or ``Messages.listed``."""
    return json.loads(text)
