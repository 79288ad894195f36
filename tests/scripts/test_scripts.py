"""Every script, told to the model and to a server: both must answer what the script says."""

import pytest

from metastore.config import TxnSettings
from metastore.loops.reaper import Reaper
from metastore.txns.purge_service import PurgeService
from tests.support.script_model import Model
from tests.support.script_server import ThriftDriver
from tests.support.scripts import SCRIPTS, all_scripts, play

scripts = pytest.mark.parametrize("path", all_scripts(), ids=lambda path: str(path.relative_to(SCRIPTS)))


@scripts
def test_model(path):
    text = path.read_text(encoding="utf-8")

    assert play(text, Model()) == text


@scripts
def test_server(path, client, database, test_clock):
    text = path.read_text(encoding="utf-8")
    driver = ThriftDriver(client, test_clock, Reaper(PurgeService(database, TxnSettings())))

    assert play(text, driver) == text
