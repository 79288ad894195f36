"""A copy of what a reader reads, in names without the ``_v`` of a compaction: Hive before 4 cannot read it, nor can what has its code."""

import json
import shutil
from pathlib import Path

from metastore.acid.state import AcidState

MARKER = json.dumps({"thisFileVersion": "0", "dataFormat": "compacted"})
"""What Hive before 4 has in ``_metadata_acid`` of a base that a compactor wrote."""


def copied(source: Path, target: Path, state: AcidState) -> None:
    """Copy base, deltas and original files of a state into a new directory. A base that a compaction wrote is marked as such."""
    target.mkdir(parents=True)
    for original in state.originals:
        (target / original.path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source / original.path, target / original.path)
    for chosen in (*([state.base] if state.base else []), *state.deltas):
        shutil.copytree(source / chosen.path, target / plain(chosen.path))
    if state.base and plain(state.base.path) != state.base.path:
        (target / plain(state.base.path) / "_metadata_acid").write_text(MARKER)


def plain(name: str) -> str:
    """Return a directory's name without the ``_v``."""
    return name.partition("_v")[0]
