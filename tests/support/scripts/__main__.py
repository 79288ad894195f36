"""Write the model's answers into the scripts."""

import sys

from tests.support.model import Model
from tests.support.scripts import SCRIPTS, all_scripts, play, settings_of

for path in all_scripts():
    text = path.read_text(encoding="utf-8")
    played = play(text, Model(settings_of(text)))
    if played != text:
        path.write_text(played, encoding="utf-8")
        sys.stdout.write(f"recorded {path.relative_to(SCRIPTS)}\n")
