"""Command lines, asked as an operator asks them, on a whole server."""

import json

import pytest

from metastore.cli.main import main


@pytest.fixture
def run(server, capsys, monkeypatch):
    """Run a command line; (exit code, stdout, stderr)."""
    monkeypatch.setenv("METASTORE_URI", server.thrift_uri)

    def ran(*arguments):
        capsys.readouterr()  # what the server has logged
        code = 0
        try:
            main([str(each) for each in arguments])
        except SystemExit as leaving:
            code = leaving.code
        return code, *capsys.readouterr()
    return ran


@pytest.fixture
def asking(run):
    """(Exit code, the answer as JSON)."""
    def asked(*arguments):
        code, out, _ = run(*arguments, "-o", "json")
        return code, json.loads(out)
    return asked
