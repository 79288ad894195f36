"""Stories about transactions and locks as text files, told to a pure model and to a server alike.

What they may say, and how to add to them: tests/scripts/README.md.
"""

from pathlib import Path

from tests.support.scripts.story import Story

SCRIPTS = Path(__file__).parents[2] / "scripts"
DASHES = "----"


def blocks(text):
    """Return the (lines before the dashes, recorded answer) of a script."""
    stories = []
    commands = []
    lines = iter(text.splitlines())
    for line in lines:
        if line == DASHES:
            answer = []
            for answered in lines:
                if not answered:
                    break
                answer.append(answered)
            stories.append((commands, "\n".join(answer)))
            commands = []
        else:
            commands.append(line)
    return stories


def settings_of(text):
    """Return the settings that a script asks for."""
    first = next((line for line in text.splitlines() if line and not line.startswith("#")), "")
    words = first.split()
    return dict(word.split("=", 1) for word in words[1:]) if words[:1] == ["settings"] else {}


def play(text, world):
    """Play the script and return it with the answers of this world."""
    story = Story(world)
    played = []
    for commands, _ in blocks(text):
        answers = [answer for line in commands for answer in story.tell(line)]
        played.append("\n".join([*commands, DASHES, *answers]))
    return "\n\n".join(played) + "\n"


def all_scripts():
    """Every script of the tree."""
    return sorted(path for path in SCRIPTS.rglob("*") if path.is_file() and path.suffix == "" and path.parent != SCRIPTS)
