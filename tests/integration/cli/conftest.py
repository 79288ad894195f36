"""Command lines, asked as an operator asks them, on a whole server."""

import json
import sys

import pytest
import structlog

from metastore.cli.main import main


@pytest.fixture
def run(server, capsys, monkeypatch):
    """Run a command line; (exit code, stdout, stderr)."""
    monkeypatch.setenv("METASTORE_URI", server.thrift_uri)
    before = structlog.get_config()
    structlog.configure(logger_factory=lambda *_: structlog.PrintLogger(sys.stderr))  # the server's log is no answer of a command

    def ran(*arguments):
        capsys.readouterr()  # what the server has logged
        code = 0
        try:
            main([str(each) for each in arguments])
        except SystemExit as leaving:
            code = leaving.code
        return code, *capsys.readouterr()
    yield ran
    structlog.configure(**before)


@pytest.fixture
def asking(run):
    """(Exit code, the answer as JSON)."""
    def asked(*arguments):
        code, out, _ = run(*arguments, "-o", "json")
        return code, json.loads(out)
    return asked
