"""What the documents say is there, is there."""

import importlib
import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest
import sqlalchemy
import yaml

from metastore.cli.main import COMMANDS, cli
from metastore.config.settings import ROWS
from metastore.db import tables
from tests.docs import chart, decisions, figures, reference

ROOT = Path(__file__).parents[2]
FIGURE = {"name": "open + commit", "command": "python -m benchmarks.transactions", "peer": "Hive 4.2.0", "values": {"ours": 300, "peer": 100},
          "unit": "/s", "goal": {"ratio": 2}, "measured": "2026-11-28", "conditions": "load average 1"}
HEAD = "# {}. T\n\n- Date: {}\n- Theme: {}\n\n## Context\n"
PAGES = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("deploy/**/*.md")]


def commands(command=cli, path=()):
    context = click.Context(command, info_name="metastore")
    yield " ".join(path), command
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            yield from commands(command.get_command(context, name), (*path, name))


@pytest.mark.parametrize(("name", "command"), [pytest.param(*pair, id=pair[0] or "metastore") for pair in commands()])
def test_every_command_and_option_has_help(name, command):
    assert command.help, name
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            assert parameter.help, f"{name} {parameter.opts}"


def test_the_generated_pages_are_current():
    for path, page in reference.PAGES.items():
        assert path.read_text() == "".join(page()), f"{path.name}: run `make docs`"


def test_every_value_of_the_chart_has_a_meaning():
    text = (chart.CHART / "values.yaml").read_text()
    said = chart.meanings(text)
    assert [name for name, _ in chart.leaves(yaml.safe_load(text), said) if name not in said] == []


def test_every_key_is_listed():
    page = (ROOT / "docs" / "reference" / "configuration.md").read_text()
    assert [row.key.name for row in ROWS.values() if f"`{row.key.name}`" not in page] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#:]+)[^)]*\)", page.read_text()):
        assert (page.parent / target).exists(), target


def anchors_in(page):
    """Return the anchors that GitHub makes of the titles of a page."""
    titles = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    plain = [re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", title).lower() for title in titles]
    return {re.sub(r"[^\w\- ]", "", title).strip().replace(" ", "-") for title in plain}


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_to_sections_lead_somewhere(page):
    links = re.findall(r"\]\(([^)#:\s]*\.md)?#([^)\s]+)\)", page.read_text())
    assert [f"{target}#{anchor}" for target, anchor in links if anchor not in anchors_in((page.parent / target) if target else page)] == []


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md"])
def test_make_targets_that_are_named_exist(page):
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"`?\bmake ([a-z-]+)\b(?= *[`#\n ])", (ROOT / page).read_text())) - {"sure"} <= targets


def code_in(page):
    """Return the lines of a page's code blocks, and each of its code spans as one line."""
    text = page.read_text()
    blocks = re.findall(r"^```\w*\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    spans = re.findall(r"`([^`]+)`", re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL))
    return [*(line for block in blocks for line in block.split("\n")), *(" ".join(span.split()) for span in spans)]


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_commands_that_are_named_exist(page):
    there = dict(commands())
    for line in code_in(page):
        for words in re.findall(r"(?:^|[;&|(] *|exec )metastore((?: [a-z][a-z-]*)+)", line.split(" #")[0]):
            path = ""
            for word in words.split():
                if not isinstance(there[path], click.Group):
                    break
                path = f"{path} {word}".strip()
                assert path in there, line


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_modules_that_are_named_exist(page):
    for line in code_in(page):
        for name in re.findall(r"\bpython3? -m ((?:benchmarks|metastore|tests)[\w.]*)", line):
            assert importlib.util.find_spec(name), line
        for name, imported in re.findall(r"^from (metastore[\w.]*) import (\w+(?:, \w+)*)$", line):
            module = importlib.import_module(name)
            assert [one for one in imported.split(", ") if not hasattr(module, one)] == [], line


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", *(f"docs/explanation/{name}.md" for name in ("transactions", "planner", "spark-catalog"))])
def test_files_that_are_named_exist(page):
    """Return the target of a link: below the root, or below the folder that the page is about."""
    folders = [ROOT, *(ROOT / "metastore" / name for name in ("", "thrift_server", "planner", "app"))]
    named = {name for name in re.findall(r"`([\w/]+\.(?:py|java|txt|toml))`", (ROOT / page).read_text()) if not name.startswith("test_") and "NNNN" not in name}
    assert {name for name in named if not any((folder / name).exists() for folder in folders)} - {"rules.py", "store.py", "service.py"} == set()


def test_tests_that_are_named_exist():
    """Where it is said why a fault cannot come back."""
    sources = list((ROOT / "tests").rglob("*.py"))
    there = {name for path in sources for name in re.findall(r"^ *def (test_\w+)", path.read_text(), re.MULTILINE)}
    named = {name for page in PAGES for name in re.findall(r"`(test_\w+(?:\.py)?)`", page.read_text())}
    assert len(named) > 100
    assert named - there - {path.name for path in sources} == set()


def test_of_every_table_of_transactions_it_is_said_when_its_rows_go():
    page = (ROOT / "docs" / "explanation" / "retention.md").read_text()
    tables_there = {one.name for one in vars(tables).values() if isinstance(one, sqlalchemy.Table)}

    assert len(tables_there) > 20
    assert {name for name in tables_there if not re.search(rf"^\|[^|]*`{name}`", page, re.MULTILINE)} == set()


def test_a_number_stands_for_one_decision():
    """Gaps are those of decisions that no longer hold. That a number named anywhere exists is shown in test_spec.py."""
    numbers = [one.number for one in decisions.decisions()]
    assert len(numbers) == len(set(numbers)) > 40


def test_a_decision_is_short():
    """A longer one is a page of docs/explanation, or says how something is written."""
    assert {one.file for one in decisions.decisions() if len((decisions.DECISIONS / one.file).read_text().split()) > 320} == set()


@pytest.mark.parametrize(("text", "wrong"), [
    ("# 7. T\n\n## Context\n", "write '- Date: YYYY-MM-DD'"), (HEAD.format("8", "2026-11-21", "Files"), "the number 8"),
    (HEAD.format("7", "yesterday", "Files"), "'yesterday' is no date"), (HEAD.format("7", "2026-11-21", "Weather"), "'Weather' is none of the themes")])
def test_a_decision_without_its_head_is_refused(text, wrong):
    with pytest.raises(decisions.MalformedDecisionError, match=f"docs/adr/0007-t.md: .*{wrong}"):
        decisions.decision("0007-t.md", text)


def test_a_decision_is_read():
    read = decisions.decision("0007-t.md", HEAD.format("7", "2026-11-21", "Files"))

    assert (read.number, read.title, str(read.date), read.theme) == (7, "T", "2026-11-21", "Files")


@pytest.mark.parametrize(("change", "ratio", "verdict"), [
    ({}, (3, 3), "≥2: yes"), ({"goal": {"ratio": 4}}, (3, 3), "≥4: no"), ({"goal": {"ours": 3000}}, (3, 3), "≥3,000/s: no"),
    ({"unit": "ms"}, (3, 3), "≤2: no"), ({"unit": "ms", "goal": {"ours": 300}}, (3, 3), "≤300 ms: yes"),
    ({"values": {"ours": 300, "peer": 100, "ratio": 2.5}}, (2.5, 2.5), "≥2: yes"), ({"values": {"ratio": [1.5, 2.5]}}, (1.5, 2.5), "≥2: partly"),
    ({"values": {"ours": [200, 300], "peer": [50, 100]}}, (2, 6), "≥2: yes"), ({"goal": {}}, (3, 3), ""),
    ({"values": {"ours": 300}, "peer": "", "goal": {}}, None, "")])
def test_a_figure_tells_its_ratio_and_whether_it_meets_its_goal(change, ratio, verdict):
    read = figures.figure(FIGURE | change)

    assert (read.ratio, read.verdict) == (ratio, verdict)


@pytest.mark.parametrize(("change", "wrong"), [
    ({"values": {}}, "its values lack ours"), ({"values": {"peer": 100}}, "its values lack ours"), ({"values": {"theirs": 1}}, "theirs is not known"),
    ({"peer": ""}, "name the peer"), ({"values": {"ours": 300}}, "name the peer"), ({"load": 1}, "load is not known"), ({"measured": "today"}, "'today' is no date"),
    ({"values": {"ratio": 2}, "goal": {"ours": 1}}, "its goal is for a value that it lacks"),
    ({"values": {"ours": 2}, "peer": ""}, "its goal is for a value that it lacks")])
def test_a_malformed_figure_is_refused(change, wrong):
    with pytest.raises(figures.MalformedFigureError, match=f"open .*: {wrong}"):
        figures.figure(FIGURE | change)


def test_a_figure_without_a_key_is_refused():
    with pytest.raises(figures.MalformedFigureError, match="add command, conditions, measured, peer, unit, values"):
        figures.figure({"name": "open + commit"})


def test_commands_of_figures_exist():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for one in (row for rows in figures.figures().values() for row in rows):
        module = re.match(r"python -m (benchmarks\.\w+)(?: |$)", one.command)
        target = re.match(r"make ([a-z-]+)", one.command)
        assert (module and importlib.util.find_spec(module[1])) or (target and target[1] in targets), one


def test_a_page_without_its_markers_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(figures, "PAGE", tmp_path / "performance.md")
    figures.PAGE.write_text(figures.BEGIN)

    with pytest.raises(figures.MalformedFigureError, match="performance.md lacks the lines between which the table stands"):
        list(figures.page())


def test_help_lists_the_commands_in_their_own_words_and_loads_nothing_heavy():
    code = ("import sys; from metastore.cli.main import main\ntry: main(['--help'])\nexcept SystemExit: pass\n"
            "print(sorted({'sqlalchemy', 'thrift', 'psycopg2', 'fsspec', 'pyspark', 'structlog'} & set(sys.modules)))")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env={**os.environ, "COLUMNS": "120"})

    assert done.stdout.splitlines()[-1] == "[]"
    listed = dict(re.findall(r"^  ([a-z]+) {2,}(\S.*)$", done.stdout, re.MULTILINE))
    assert listed == {name: cli.get_command(click.Context(cli), name).help.splitlines()[0] for name in COMMANDS}
