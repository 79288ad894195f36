"""Recorded answers of Hive's own metastores: calls as they were sent, scene after scene, with what was answered."""

import json
import lzma
from pathlib import Path

PATH = Path(__file__).with_name("answers.jsonl.xz")


def write(log):
    """Write the calls that were answered, in their order."""
    lines = (json.dumps(entry, separators=(",", ":"), ensure_ascii=False) for entry in log)
    PATH.write_bytes(lzma.compress("\n".join(lines).encode(), preset=9 | lzma.PRESET_EXTREME))


def read():
    """Yield (scene's name, method, what is changed, arguments, answers by version)."""
    for line in lzma.decompress(PATH.read_bytes()).decode().split("\n"):
        yield json.loads(line)
