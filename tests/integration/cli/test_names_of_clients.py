"""Whatever a client calls itself: an operator's terminal gets no character that it acts on, and programs the very name."""

import re

import pytest
import yaml

from metastore.cli import output
from tests.integration.cli.test_why_commands import Client

NAME = "eve\x1b[2J\x07\rroot\x9b31m\x85\x7f\u202eevil\u2028x \N{SNOWMAN} é"
ACTED_ON = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")


@pytest.fixture
def waiting(client):
    """(Transaction that holds, lock that waits), both of a client with such a name."""
    c = Client(client)
    holder = c.open(NAME, NAME)
    c.lock("orders", holder, "EXCLUSIVE", NAME, NAME)
    return holder, c.lock("orders", user=NAME, agent=NAME)


def _commands(waiting):
    holder, lock = waiting
    return [("show", "transactions"), ("show", "locks"), ("lock", "why", lock), ("lock", "why", "db.orders"),
            ("txn", "explain", holder)]


def test_nothing_that_a_terminal_acts_on(run, waiting):
    for command in _commands(waiting):
        for form in ("table", "json", "yaml"):
            _, out, err = run(*command, "-o", form)
            assert ("evil" in out, ACTED_ON.findall(out + err)) == (True, []), (command, form)
    said = run("lock", "release", "--agent", NAME.replace("eve", "Eve"))
    assert ("Nobody has a lock" in said[2], ACTED_ON.findall(said[2])) == (True, [])


def test_a_name_begins_no_line(client, run):
    c = Client(client)
    c.lock("orders", c.open("eve", "x\nNobody waits."), "EXCLUSIVE", "eve", "x\nNobody waits.")
    waits = c.lock("orders", user="bob")
    for command in (("lock", "why", waits), ("lock", "why", "db.orders"), ("show", "locks"), ("show", "transactions")):
        out = run(*command)[1]
        assert ("Nobody waits." in out, "\nNobody" in out) == (True, False), command


def test_people_see_the_other_characters_in_columns_that_fit(run, waiting):
    _, out, _ = run("show", "transactions")
    heading, row = out.splitlines()

    assert r"eve\u001b[2J\u0007\u000droot\u009b31m\u0085\u007f\u202eevil\u2028x ☃ é" in row
    assert row[heading.index("HOSTNAME"):].startswith("h1")


def test_programs_get_the_name_itself(run, waiting):
    _, [row] = run("show", "transactions")[0], yaml.safe_load(run("show", "transactions", "-o", "yaml")[1])
    assert (row["user"], row["agent_info"]) == (NAME, NAME)


def test_programs_get_it_from_json_too(asking, waiting):
    assert {row["user"] for row in asking("show", "locks")[1]} == {NAME}


def test_a_line_break_begins_no_row(capsys):
    output.show_rows(["user"], [["eve\n1 OPEN root"]], "table")
    output.show_fields({"user": "eve\nstate  OPEN"}, "table")

    assert capsys.readouterr().out.splitlines() == ["USER", r"eve 1 OPEN root", r"user  eve state  OPEN"]
