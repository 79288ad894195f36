"""JSON parameters for JSONB columns."""

import json
from typing import Any

from metastore.errors import InvalidObjectError


def to_json(value: Any) -> str:
    """Return JSON text that PostgreSQL can keep. Raises: InvalidObjectError for the only character that it cannot."""
    text = json.dumps(value, ensure_ascii=False)
    if "\\u0000" in text:
        raise InvalidObjectError("The character U+0000 cannot be stored; use an escape such as \\001 or none at all")
    return text
