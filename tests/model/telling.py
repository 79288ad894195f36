"""One story told to two worlds at once, looked over after each command; and how a story that fails is made short."""

from tests.model.properties import Witness
from tests.support.model import Model
from tests.support.scripts import DASHES, play
from tests.support.scripts.story import Story

LOOKS = ("txns", "info", "who", "components", "completed", "write_set")


class MismatchError(AssertionError):
    """The worlds differ, or a property does not hold."""


class Telling:
    """Two worlds."""

    def __init__(self, ideal, real):
        self.ideal, self.real = Story(ideal), Story(real)
        self.witness = Witness(self.real)

    def tell(self, line):
        """Both do the same and answer the same, look the same afterwards, and what must hold holds."""
        expected, answered = self.ideal.tell(line), self.real.tell(line)
        if expected != answered:
            raise MismatchError(f"{line!r} is answered\n{_text(answered)}\ninstead of\n{_text(expected)}")
        self.witness.note(line, answered)
        self.look()

    def look(self):
        """Check that both worlds look the same, and that all properties hold."""
        for look in LOOKS:
            expected, answered = self.ideal.tell(look), self.real.tell(look)
            if expected != answered:
                raise MismatchError(f"{look!r} shows\n{_text(answered)}\ninstead of\n{_text(expected)}")
        complaints = self.witness.complaints()
        if complaints:
            raise MismatchError("\n".join(complaints))


def shortened(lines, fails):
    """Return the lines that the failure needs: pieces are left out first, single lines last."""
    size = len(lines) // 2
    while size:
        start = len(lines) - size
        while start >= 0:
            fewer = lines[:start] + lines[start + size:]
            if fails(fewer):
                lines = fewer
            start -= size
        size //= 2
    return lines


def failure(lines, ideal, real):
    """How the story fails in two new worlds; None if it does not, or if it makes no sense."""
    telling = Telling(ideal, real)
    try:
        for line in lines:
            telling.tell(line)
    except MismatchError as failed:
        return failed
    except (KeyError, ValueError):
        return None
    return None


def script(lines):
    """Return a script of these commands and a look around, with the answers of the model."""
    return play("\n".join([*lines, *LOOKS, DASHES, "", ""]), Model())


def _text(answers):
    return "\n".join(f"    {answer}" for answer in answers)
