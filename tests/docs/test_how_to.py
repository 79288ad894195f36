"""Each block of a how-to, and of the README, runs in a test, or it is said why not; all of them are at least read by what they are written for."""

import json
import re
import shlex
import subprocess
from contextlib import suppress
from pathlib import Path

import click
import psycopg2.extensions
import pytest
import yaml

from metastore.cli.main import cli
from metastore.config.settings import SettingsSource, build
from metastore.spark.catalog import CATALOG, EXTENSIONS
from tests.support.how_to import NOT_RUN, PAGES, ROOT, all_blocks, path_of, why_not_run

ALL = ["README.md", *sorted(path.name for path in PAGES.glob("*.md"))]
SPARK = "tests/acceptance/how_to/test_pages.py"
FIRST = "tests/acceptance/how_to/test_first_lines.py"
CLI = "tests/integration/cli/test_pages.py"
HERE = "tests/docs/test_how_to.py"

RUN_BY = {  # a page: the tests that run its blocks, by their languages
    "README.md": {"python": FIRST},
    "acid-tables-from-pyspark.md": {"python": SPARK, "sql": SPARK},
    "acid-tables-in-spark-sql.md": {"python": SPARK, "sql": SPARK, "bash": FIRST},
    "alerts.md": {"yaml": "tests/deploy/test_how_to.py"},
    "backup.md": {"sh": "tests/integration/cli/test_backup.py", "": HERE},
    "clients-of-acid-tables.md": {"sh": HERE, "sql": CLI},
    "constraints.md": {"sql": SPARK, "": SPARK},
    "dbt.md": {"yaml": HERE},
    "follow-what-happens.md": {"text": HERE, "python": CLI},
    "high-availability.md": {"sh": "tests/integration/cli/test_backup.py", "": HERE},
    "in-front-of-an-existing-metastore.md": {"bash": "tests/integration/upstream/test_how_to.py"},
    "keep-files-for-replicas.md": {"sh": HERE},
    "kubernetes.md": {"sh": "tests/deploy/test_how_to.py", "yaml": HERE, "text": HERE},
    "machines.md": {"sh": "tests/deploy/test_how_to.py"},
    "read-the-catalog-by-sql.md": {"sql": "tests/integration/db/test_hive_views.py"},
    "read-the-past.md": {"sql": SPARK, "python": SPARK},
    "read-without-spark.md": {"python": "tests/integration/client/test_scan.py"},
    "sidecar.md": {"sh": "tests/deploy/test_how_to.py"},
    "start-with-your-hive-site.md": {"sh": "tests/integration/cli/test_start_with_hive_site.py", "bash": "tests/integration/cli/test_start_with_hive_site.py"},
    "stream-into-tables.md": {"python": SPARK},
    "stream-without-spark.md": {"sql": SPARK, "python": "tests/integration/streaming/test_page.py"},
    "tls.md": {"sh": HERE},
    "under-an-operator.md": {"yaml": "tests/deploy/test_how_to.py"},
    "upgrade.md": {"sh": "tests/integration/cli/test_backup.py"},
    "warehouse-on-s3.md": {"bash": HERE, "python": HERE},
    "who-holds-the-lock.md": {"text": CLI},
    "why-is-it-not-compacted.md": {"text": CLI},
}


@pytest.mark.parametrize("page", ALL)
def test_each_block_runs_in_a_test_or_it_is_said_why_not(page):
    runs = {block.language for block in all_blocks(page) if why_not_run(page, block) is None}
    assert runs == set(RUN_BY.get(page, {}))
    for test in RUN_BY.get(page, {}).values():
        assert page.removesuffix(".md") in (ROOT / test).read_text(), test


def test_each_reason_is_that_of_a_block():
    for page, reasons in NOT_RUN.items():
        starts = [block.text for block in all_blocks(page)]
        assert [start for start in reasons if not any(text.startswith(start) for text in starts)] == []


@pytest.mark.parametrize("page", ALL)
def test_each_block_is_read_by_its_language(page):
    for language, text in all_blocks(page):
        if language == "python":
            compile(text, page, "exec")
        elif language == "yaml":
            assert yaml.safe_load(text)
        elif language in {"sh", "bash"} and not text.startswith("--conf"):
            assert subprocess.run(["bash", "-n"], input=text, capture_output=True, text=True, check=False).stderr == ""


def commands_of(page):
    """Yield the words of each `metastore` command in blocks and in the text, with or without a prompt."""
    text = path_of(page).read_text()
    spans = re.findall(r"`(metastore [^`]+)`", re.sub(r"^ *```.*?^ *```", "", text, flags=re.MULTILINE | re.DOTALL))
    lines = "\n".join([block.text for block in all_blocks(page)] + spans).replace("\\\n", " ").splitlines()
    for line in lines:
        found = re.match(r" *(?:\$ )?metastore (.+)", re.split(r"\s+#|\s+>|\.\.\.", line)[0])
        if found and not re.search(r"\b[A-Z]{2,}\b", found[1].replace("$DATABASE", "")):  # a name in capitals stands for something
            yield shlex.split(found[1])


@pytest.mark.parametrize("page", [page for page in ALL if list(commands_of(page))])
def test_our_command_line_takes_each_command(page, monkeypatch):
    monkeypatch.setattr(click.Path, "convert", lambda _, value, *__: Path(value))  # the files of a page are not here
    for command_line in commands_of(page):
        command, words = cli, list(command_line)
        while isinstance(command, click.Group) and words:
            command = command.get_command(click.Context(cli), words.pop(0))
        with suppress(click.MissingParameter):  # where the text speaks of a command; the options that it has are known all the same
            if not isinstance(command, click.Group):
                options = command.make_context("metastore", words).params
                build([SettingsSource(page, dict(one.split("=", 1) for one in options.get("assignments", ())))])


def test_an_address_of_postgresql_is_one():
    [block] = [block.text for block in all_blocks("high-availability.md") if not block.language]
    assert psycopg2.extensions.parse_dsn(block.strip())["target_session_attrs"] == "read-write"


def test_the_profile_of_dbt_has_the_settings_of_the_catalog():
    [block] = [block.text for block in all_blocks("dbt.md")]
    settings = yaml.safe_load(block)["shop"]["outputs"]["session"]["server_side_parameters"]
    assert (settings["spark.sql.catalog.spark_catalog"], settings["spark.sql.extensions"]) == (CATALOG, EXTENSIONS)


def test_the_rule_of_prometheus_names_metrics_that_are_there():
    [block] = [block.text for block in all_blocks("kubernetes.md") if block.language == "yaml"]
    [rule] = yaml.safe_load(block)["externalRules"]
    there = set(re.findall(r"metastore_\w+", (ROOT / "metastore" / "telemetry" / "metrics.py").read_text()))
    wanted = re.compile(re.search(r'__name__=~"([^"]+)"', rule["seriesQuery"])[1])
    assert len({name for name in there if wanted.fullmatch(name)}) == 2


def test_the_rule_of_a_bucket_is_json():
    """`aws s3api` of warehouse-on-s3.md."""
    [text] = [block.text for block in all_blocks("warehouse-on-s3.md") if "aws s3api" in block.text]
    words = shlex.split(text.replace("\\\n", " "))
    [rule] = json.loads(words[words.index("--lifecycle-configuration") + 1])["Rules"]
    assert rule["AbortIncompleteMultipartUpload"] == {"DaysAfterInitiation": 7}
