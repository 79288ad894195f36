"""LIKE in both dialects at once, in time that grows with the text and not with the pattern's wildcards.

2.3 and 3.x clients write regular expressions, 4.x clients SQL patterns, and nothing tells them apart: ``%`` and ``.*``
are any run, ``_`` and ``.`` any character, a backslash quotes. Reading both can only keep too much (clients filter
again), never too little.

Rule: no backtracking. A regular expression made from a client's pattern would try every way to split the text among its
wildcards, for ever and with the interpreter held. Here one number has a bit for each place of the pattern that the text
so far can reach; each character shifts the bits.
"""

import re
from functools import lru_cache

from metastore.errors import InvalidRequestError

LONGEST_PATTERN = 10_000
_TOKEN = re.compile(r"\\.|\.\*|.", re.DOTALL)
_ANY_RUN, _ANY_ONE = ("%", ".*"), ("_", ".")


class Like:
    """A pattern."""

    def __init__(self, pattern: str, *, ignore_case: bool = False) -> None:
        """Compile a pattern. Raises: InvalidRequestError for a pattern that is longer than any value it could match."""
        if len(pattern) > LONGEST_PATTERN:
            raise InvalidRequestError(
                f"A LIKE pattern of {len(pattern)} characters is too long, at most {LONGEST_PATTERN}: "
                f"{pattern[:40]} ..."
            )
        self._runs = 0  # Bits of places at which any run of characters may pass.
        self._any = 0  # Bits of steps that every character takes, from the place before to this place.
        self._steps: dict[str, int] = {}  # Bits of steps that one character takes.
        place = 0
        for token in _TOKEN.findall(pattern):
            if token in _ANY_RUN:
                self._runs |= 1 << place
                continue
            place += 1
            if token in _ANY_ONE:
                self._any |= 1 << place
            else:
                character = token.removeprefix("\\") or token
                for spelling in {character, character.lower(), character.upper()} if ignore_case else {character}:
                    self._steps[spelling] = self._steps.get(spelling, 0) | 1 << place
        self._end = 1 << place

    def matches(self, text: str) -> bool:
        """Return True if the whole text fits the pattern."""
        steps, any_step, runs = self._steps, self._any, self._runs
        places = 1
        for character in text:
            places = (places << 1 & (any_step | steps.get(character, 0))) | (places & runs)
            if not places:
                return False
        return bool(places & self._end)


@lru_cache(maxsize=256)
def like(pattern: str, *, ignore_case: bool = False) -> Like:
    """Return the compiled pattern from the cache. Raises: InvalidRequestError."""
    return Like(pattern, ignore_case=ignore_case)


def like_prefix(pattern: str) -> str:
    """Return the common prefix of all texts that match the pattern."""
    match = re.match(r"[^%_.\\]*", pattern)
    return match[0] if match else ""
