"""Messages between Python and our Java classes, as JSON: ``Messages.java`` is the other side."""

import json
from typing import Any


def to_java(value: Any) -> str:
    """Return lists and dicts of texts, numbers and truth values as JSON, for ``Messages.list`` and ``.map``."""
    return json.dumps(value)


def from_java(text: str) -> Any:
    """Return the value of a JSON text from ``Messages.text`` or ``Messages.listed``."""
    return json.loads(text)
