"""What is secret in a setting or a text, and how it is hidden: the one rule for clients, commands, pages and logs.

Rule: a value whose name speaks of a secret is hidden; in any other text the passwords of URLs are, and the values of
pairs (``spark.hadoop.fs.s3a.secret.key=...`` in a list of Spark settings) whose names do. Every pattern looks at a
bounded stretch for each place, since texts may come from clients.
"""

import re

MASK = "********"
_NAME = re.compile(
    r"passw|pwd|bindpw|secret|token|credential|(?:access|private|account|encryption|signing|api)[._-]?key|[.-]key(?:[.-]|$)",
    re.IGNORECASE,
)
_PASSWORD_IN_URL = re.compile(r"(://[^:/@\s]{0,200}:)[^@\s]{0,500}(?=@)")
_PAIR = re.compile(r"(?<![\w.-])([\w.-]{1,200})=")
_VALUE = re.compile(r"[^,;&\s\"']*")


def is_secret(name: str) -> bool:
    """Whether what has this name is hidden."""
    return _NAME.search(name) is not None


def redacted(text: str) -> str:
    """The text with the secrets in it hidden."""
    shown, end = [], 0
    for pair in _PAIR.finditer(text) if "=" in text else ():
        if pair.start() >= end and is_secret(pair[1]):
            value = _VALUE.match(text, pair.end())
            shown += [text[end : pair.end()], MASK if value and value[0] else ""]
            end = value.end() if value else pair.end()
    text = "".join(shown) + text[end:]
    return _PASSWORD_IN_URL.sub(rf"\1{MASK}", text) if "://" in text else text
