import json

import pytest
import structlog

from metastore.telemetry import logs


@pytest.fixture(autouse=True)
def unconfigured():
    yield
    structlog.reset_defaults()


def test_one_json_object_a_line(capsys):
    logs.configure("info", "json")
    logs.get_logger("here").info("serving", port=9083, database="postgresql://hive:hush@h/d", password="hush", note="a\nb",
                                 other="postgresql://h/d?user=hive&password=hush&sslmode=require")
    logs.get_logger("here").debug("not this")

    [line] = capsys.readouterr().err.splitlines()
    event = json.loads(line)
    assert event.pop("timestamp")
    assert event == {"event": "serving", "module": "here", "level": "info", "port": 9083, "note": "a\nb",
                     "database": "postgresql://hive:********@h/d", "password": "********",
                     "other": "postgresql://h/d?user=hive&password=********&sslmode=require"}


def test_a_failure_carries_its_trace(capsys):
    logs.configure("info", "json")
    try:
        int("why")
    except ValueError:
        logs.get_logger("here").exception("failed")

    assert "ValueError: invalid literal" in json.loads(capsys.readouterr().err)["exception"]


def test_text_for_people(capsys):
    logs.configure("debug", "console")
    logs.get_logger("here").debug("serving", url="thrift://u:hush@h:1")

    printed = capsys.readouterr().err
    assert "serving" in printed
    assert "hush" not in printed
