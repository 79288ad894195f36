"""Redaction of texts before they are shown: secrets, and characters that a terminal acts on.

Rule: a value whose name suggests a secret is hidden; in any other text the passwords of URLs are hidden, and the values
of pairs with such names (``spark.hadoop.fs.s3a.secret.key=...`` in a list of Spark settings). Every pattern looks at a
bounded stretch for each place, since texts may come from clients. Control characters of names that clients chose are
shown as escapes, and so are those that turn the direction of a text or end a line invisibly.
"""

import re

MASK = "********"
_NAME = re.compile(
    r"passw|pwd|bindpw|secret|token|credential|[.]sas[.]|(?:access|private|account|encryption|signing|api)[._-]?key|[.-]key(?:[.-]|$)",
    re.IGNORECASE,
)
_PASSWORD_IN_URL = re.compile(r"(://[^:/@\s]{0,200}:)[^@\s]{0,500}(?=@)")
_PAIR = re.compile(r"(?<![\w.-])([\w.-]{1,200})=")
_VALUE = re.compile(r"[^,;&\s\"']*")
_ACTED_ON = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")


def is_secret(name: str) -> bool:
    """Return True if a value of this name is hidden."""
    return _NAME.search(name) is not None


def redacted(text: str) -> str:
    """Return the text with the secrets in it hidden."""
    shown, end = [], 0
    for pair in _PAIR.finditer(text) if "=" in text else ():
        if pair.start() >= end and is_secret(pair[1]):
            value = _VALUE.match(text, pair.end())
            shown += [text[end : pair.end()], MASK if value and value[0] else ""]
            end = value.end() if value else pair.end()
    text = "".join(shown) + text[end:]
    return _PASSWORD_IN_URL.sub(rf"\1{MASK}", text) if "://" in text else text


def printable(text: str) -> str:
    """Return one line of text with escapes, as JSON has them, for characters that a terminal acts on."""
    return _ACTED_ON.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def printable_lines(text: str) -> str:
    """Return a text of our own lines, with escapes as ``printable`` for names that clients chose."""
    return "\n".join(map(printable, text.split("\n")))
