"""What Python and Java must agree on, as ``shared_vectors.json`` has it; a test of each side reads that file."""

import base64
import json
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

PATH = Path(__file__).with_name("shared_vectors.json")
VECTORS: dict[str, Any] = json.loads(PATH.read_text("utf-8"))
_READ = {
    "boolean": "true".__eq__, "tinyint": int, "smallint": int, "int": int, "bigint": int, "float": float, "double": float, "string": str,
    "varchar": str, "char": str, "binary": base64.b64decode, "date": date.fromisoformat, "decimal": Decimal, "timestamp": datetime.fromisoformat,
}

HASHES: list[tuple[str, Any, int, int | None]] = [
    (kind, None if text is None else _READ[kind.partition("(")[0]](text), first, second)
    for kind, text, first, second in VECTORS["bucket_hashes"]
]
"""Type, value, and the hashes of version 1 and 2 that Hive computed; None: none."""
