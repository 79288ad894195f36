"""Every script, told to the model and to a server: both must answer what the script says."""

import pytest

from tests.support.model import Model
from tests.support.scripts import SCRIPTS, all_scripts, play, settings_of

scripts = pytest.mark.parametrize("path", all_scripts(), ids=lambda path: str(path.relative_to(SCRIPTS)))


@scripts
def test_model(path):
    text = path.read_text(encoding="utf-8")

    assert play(text, Model(settings_of(text))) == text


@scripts
def test_server(path, worlds):
    text = path.read_text(encoding="utf-8")

    assert play(text, worlds(settings_of(text))) == text
