"""SQL statements in a file beside the store that runs them: ``store.py`` has ``store.sql``.

Each statement stands under a line ``-- name: NAME``, with psycopg2's placeholders. ``{part}`` stands for text that the
store puts in once, when it is imported: a value of a rule, or a fragment that several statements share.
"""

import re
from pathlib import Path

_NAME = re.compile(r"^-- name: (\w+)\n", re.MULTILINE)
_COMMENT = re.compile(r"^ *--.*\n", re.MULTILINE)
_PART = re.compile(r"\{(\w+)\}")


class Statements:
    """The statements of one file."""

    def __init__(self, store: str) -> None:
        """Read the statements; ``store``: ``__file__`` of their module."""
        self.path = Path(store).with_suffix(".sql")
        _, *sections = _NAME.split(self.path.read_text(encoding="utf-8"))
        self._texts = {
            name: _COMMENT.sub("", text).strip().removesuffix(";")
            for name, text in zip(sections[::2], sections[1::2], strict=True)
        }

    def text(self, name: str, **parts: object) -> str:
        """Return the SQL of a statement. Raises: KeyError, if the parts are not those that the statement names."""
        text = self._texts[name]
        if surplus := parts.keys() - set(_PART.findall(text)):
            raise KeyError(f"{self.path.name}: {name} has no part {', '.join(sorted(surplus))}")
        return _PART.sub(lambda part: str(parts[part[1]]), text)
