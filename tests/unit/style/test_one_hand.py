"""What every module does alike, read from the source."""

import ast
import dataclasses
import re
from pathlib import Path

from metastore.compaction.queue.rules.requests import Compaction
from metastore.compaction.queue.store import requests

ROOT = Path(__file__).parents[3]


def sources():
    """Our modules, with their syntax trees."""
    for path in sorted((ROOT / "metastore").rglob("*.py")):
        if "thrift_gen" not in path.parts:
            yield path.relative_to(ROOT), ast.parse(path.read_text())


def is_row(node):
    """Return True if a name stands for a row of a result, or for the first of several rows."""
    if isinstance(node, ast.Subscript):
        return isinstance(node.value, ast.Name) and node.value.id == "rows"
    return isinstance(node, ast.Name) and node.id in {"row", "left", "record"}


def test_columns_of_sql_rows_are_taken_by_name():
    """``row[12]`` says nothing. A row is unpacked into names; only the one value of the one row is ``rows[0][0]``."""
    numbered = []
    for path, tree in sources():
        if {"spark", "streaming", "cli"} & set(path.parts):
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Subscript) and is_row(node.value):
                place = node.slice.value if isinstance(node.slice, ast.Constant) else node.slice
                if isinstance(place, int | ast.Slice) and not (isinstance(node.value, ast.Subscript) and place == 0):
                    numbered.append(f"{path}:{node.lineno}: {ast.unparse(node)}")
    assert numbered == []


def test_a_compaction_is_read_in_the_order_of_its_columns():
    """The columns of the queue, and of its history, are the fields of what is made of them."""
    fields = [field.name for field in dataclasses.fields(Compaction)]
    assert fields[1] == "entity"
    for columns in (requests._QUEUED, requests._HISTORY):
        names = [column.rpartition(" ")[2].strip('"') for column in columns.split(", ")]
        assert [names[0], "entity", *names[5:]] == fields


LOGS = re.compile(r"(self\.)?_?logs?|(logs\.)?get_logger\(.*\)")
LEVELS = {"debug", "info", "warning", "error", "exception", "critical"}


def events():
    """Yield the place and the event of each call of a logger."""
    for path, tree in sources():
        for node in ast.walk(tree):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args):
                continue
            logs = node.func.attr in LEVELS and LOGS.fullmatch(ast.unparse(node.func.value))
            if logs or (node.func.attr == "warn" and "warnings" not in ast.unparse(node.func)):
                yield f"{path}:{node.lineno}", node.args[0]


def test_a_logger_is_called_where_its_level_is_named():
    """Else what it is told is not looked at below: `say = log.debug if ... else log.info`, and then `say("a.b")`."""
    passed_on = []
    for path, tree in sources():
        called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
        passed_on += [f"{path}:{node.lineno}: {ast.unparse(node)}" for node in ast.walk(tree)
                      if isinstance(node, ast.Attribute) and node.attr in LEVELS and id(node) not in called
                      and LOGS.fullmatch(ast.unparse(node.value))]
    assert passed_on == []


def test_events_of_the_log_are_words_joined_by_underscores():
    """So that who searches for one finds it, and nothing is made up of values: those are fields."""
    found = list(events())
    assert len(found) > 50
    passed_on = "metastore/thrift_server/loop/connections.py"   # `warn` gets the name from its callers, which are looked at
    wrong = [f"{place}: {ast.unparse(event)}" for place, event in found
             if not (isinstance(event, ast.Constant) and re.fullmatch(r"[a-z]+(_[a-z]+)*", str(event.value)))
             and not (place.startswith(passed_on) and ast.unparse(event) == "event")]
    assert wrong == []


def test_one_module_writes_orc():
    """pyarrow's own writer moves values behind NULL structs: `streaming/orc_writer.py` is the only one that has it."""
    writers = {str(path) for path, tree in sources() for node in ast.walk(tree)
               if isinstance(node, ast.Attribute | ast.Name) and re.search(r"\b(ORCWriter|orc\.write_table|pyorc)\b", ast.unparse(node))}
    assert writers == {"metastore/streaming/orc_writer.py"}


def test_commands_print_in_one_place():
    """Texts of clients are shown with escapes: by `output.say`, which is the only one that prints."""
    printing = {str(path) for path, tree in sources() if "cli" in path.parts for node in ast.walk(tree)
                if isinstance(node, ast.Attribute | ast.Name) and ast.unparse(node) in {"click.echo", "click.secho", "print"}}
    assert printing == {"metastore/cli/output.py"}


def test_nothing_asks_for_a_garbage_collection_in_a_users_driver():
    """A full collection of a large heap takes seconds, and no rule may rest on it. A process that only compacts is our own."""
    own = ROOT / "metastore/spark/compaction/process.py"
    texts = {path: path.read_text() for path in (ROOT / "metastore/spark").rglob("*") if path.suffix in {".java", ".py"}}
    asking = [path for path, text in texts.items() if re.search(r"\bgc\(\)|\bgc\.collect\b|GC\.run", text)]
    assert asking == [own]
