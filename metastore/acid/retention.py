"""The retention of a table's history: its property ``acid.history.retention.days``.

Rule: files that a compaction or an overwrite has replaced may be removed once the compaction that covers them was
committed that long ago: every later point of the table can be read without it.
"""

from collections.abc import Mapping
from datetime import timedelta

from metastore.errors import MetaError

HISTORY_RETENTION = "acid.history.retention.days"
_MOST_DAYS = 36_500
_DIGITS = 5


def history_retention(parameters: Mapping[str, str]) -> timedelta:
    """Return the least time for which points of the past are kept; zero if the table does not say.

    Raises: MetaError.
    """
    text = next((value for key, value in parameters.items() if key.lower() == HISTORY_RETENTION), "0").strip()
    if not (text.isascii() and text.isdecimal() and len(text) <= _DIGITS and int(text) <= _MOST_DAYS):
        raise MetaError(f"'{HISTORY_RETENTION}' must be a whole number of days from 0 to {_MOST_DAYS}, not {text!r}")
    return timedelta(days=int(text))
