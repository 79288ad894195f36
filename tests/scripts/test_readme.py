"""README.md has the grammar of the stories: its example is one, and its tables have the commands that stories use."""

import re

from tests.support.model import Model
from tests.support.scripts import SCRIPTS, all_scripts, blocks, play
from tests.support.scripts.story import Story

README = (SCRIPTS / "README.md").read_text(encoding="utf-8")
COMMANDS = {words.split()[0] for row in re.findall(r"^\| (`.+?`) \|", README, re.MULTILINE) for words in re.findall(r"`([^`]+)`", row)}


def used(text):
    """Return the commands of a story."""
    return {words[0] for commands, _ in blocks(text) for line in commands if (words := line.partition("#")[0].split())}


def test_the_example_is_a_story():
    [example] = re.findall(r"^```\n(.*?)^```\n", README, re.MULTILINE | re.DOTALL)

    assert play(example, Model({})) == example


def test_every_command_of_a_story_is_explained():
    assert set().union(*(used(path.read_text(encoding="utf-8")) for path in all_scripts())) - {"settings"} == COMMANDS


def test_every_command_that_is_explained_is_one():
    assert [word for word in sorted(COMMANDS) if not hasattr(Story, f"_{word}")] == []
