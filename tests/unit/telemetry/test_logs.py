import errno
import json
import logging
import os
import re
import sys
from contextlib import contextmanager

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


@contextmanager
def stderr_on(fd, monkeypatch):
    with os.fdopen(fd, "w") as stream:
        monkeypatch.setattr(sys, "stderr", stream)
        logs.configure("info", "json")
        yield logs.get_logger("here")
        monkeypatch.undo()


def test_a_log_whose_reader_is_gone_does_not_raise(monkeypatch):
    reader, writer = os.pipe()
    os.close(reader)
    with stderr_on(writer, monkeypatch) as log:
        for _ in range(3):
            log.error("nobody reads this")


def test_a_full_disk_does_not_raise_and_leaves_nothing_behind(monkeypatch):
    with stderr_on(os.open("/dev/full", os.O_WRONLY), monkeypatch) as log:
        with pytest.raises(OSError) as refused:
            os.write(sys.stderr.fileno(), b"x")
        assert refused.value.errno == errno.ENOSPC
        log.info("serving")
        log.error("failed")


def test_a_reader_that_stopped_reading_holds_up_nobody(monkeypatch):
    """Lines that find no room are counted, and the count is told as soon as there is room."""
    monkeypatch.setattr(logs, "_PATIENCE_MS", 1)
    reader, writer = os.pipe()
    with stderr_on(writer, monkeypatch) as log, os.fdopen(reader, "rb", buffering=0) as behind:
        for number in range(100):
            log.info("line", number=number, text="x" * 5000)
        os.set_blocking(reader, False)
        while behind.read(1 << 20):
            pass
        log.info("again")
        told = [json.loads(line) for line in behind.read(1 << 20).splitlines() if line]

    assert [(event["event"], event.get("lines", 0) > 50) for event in told] == [("log_lines_lost", True), ("again", False)]


def test_a_value_that_cannot_be_shown_fails_nothing(capsys):
    class Odd:
        def __repr__(self):
            raise RuntimeError("not even a name")

    logs.configure("info", "json")
    logs.get_logger("here").info("odd", value=Odd())
    logs.get_logger("here").info("after")

    told = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert [event["event"] for event in told] == ["log_lines_lost", "after"]


def test_without_a_stderr(monkeypatch):
    monkeypatch.setattr(sys, "stderr", None)
    logs.configure("info", "auto")
    logs.get_logger("here").info("serving")


def test_lines_of_libraries_go_the_same_way(monkeypatch):
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as stream:
        lines = logs.Lines(stream)
        assert lines.write("WARNING alembic: late\n") == 22
        assert lines.lost == 1


NAME = "eve\x1b[2J\x07\r\nroot\x9b31m\x85\x7f\u202eevil \N{SNOWMAN}"
ACTED_ON = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")


def test_a_terminal_gets_no_character_that_it_acts_on(capsys):
    """But for the colours: not in a value, nor inside of one, nor in what an error says."""
    logs.configure("info", "console")
    logs.get_logger("here").info("lock_waits", user=NAME, names=[NAME], more={NAME: NAME})
    try:
        raise ValueError(NAME)  # noqa: TRY301
    except ValueError:
        logs.get_logger("here").exception("failed", user=NAME)

    printed = re.sub("\x1b\\[[0-9;]*m", "", capsys.readouterr().err)
    assert printed.count("evil") == 6
    assert ACTED_ON.findall(printed) == []
    assert [line for line in printed.splitlines() if line.startswith("root")] == [
        r"root\u009b31m\u0085\u007f\u202eevil ☃"], "a traceback has lines"


def test_nor_from_the_log_of_a_library(capsys):
    """It goes to the same stream, whatever form the others have."""
    formatter = logs.LibraryFormatter("%(name)s: %(message)s")
    record = logging.LogRecord("thrift", logging.WARNING, "", 1, "from %s", (NAME,), None)

    assert ACTED_ON.findall(formatter.format(record)) == []
