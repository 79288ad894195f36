"""Names of Kerberos principals, and the users that they stand for.

Source: Hadoop's KerberosName with the mechanism ``hadoop`` (``hadoop.security.auth_to_local``).
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

from metastore.errors import AccessDeniedError, InvalidInputError

_PRINCIPAL = re.compile(r"([^/@]+)(?:/([^/@]+))?(?:@([^/@]+))?")
_RULE = re.compile(
    r"\s*(?:(DEFAULT)|RULE:\[(\d)*:([^\]]*)\](?:\(([^)]*)\))?(?:s/([^/]*)/([^/]*)/(g)?)?/?(L)?)\s*", re.ASCII
)
_PARAMETER = re.compile(r"\$(\d)")
_HOST = "_HOST"


class Principal(NamedTuple):
    """The parts of ``service/host@REALM``."""

    service: str
    host: str
    realm: str

    @classmethod
    def of(cls, text: str) -> "Principal":
        """Parse a principal. Raises: AccessDeniedError."""
        match = _PRINCIPAL.fullmatch(text)
        if match is None:
            raise AccessDeniedError(f"{text[:200]!r} is no principal: expected user@REALM or service/host@REALM")
        return cls(match[1], match[2] or "", match[3] or "")


def with_host(principal: str, host: str) -> str:
    """Replace ``_HOST``, as Hadoop does, by the name of this machine."""
    parts = principal.split("/")
    return principal.replace(f"/{_HOST}", f"/{host.lower()}") if len(parts) > 1 else principal


class LocalRule(NamedTuple):
    """A rule: for principals with so many parts, a form that must match, and a replacement."""

    parts: int
    form: str
    match: re.Pattern[str] | None
    pattern: re.Pattern[str] | None
    replacement: str
    is_repeated: bool
    is_lower: bool


class LocalNames:
    """The names of local users."""

    def __init__(self, text: str, realm: str) -> None:
        """Read the rules. ``realm``: the one whose users the rule DEFAULT takes.

        Raises: InvalidInputError, naming the text that is no rule.
        """
        self._realm = realm
        self._rules = rules_of(text)

    def of(self, principal: str) -> str:
        """Return the user of a principal. Raises: AccessDeniedError, if no rule is for it."""
        name = Principal.of(principal)
        for rule in self._rules:
            local = name.service if rule is None and name.realm == self._realm else None
            if rule is not None:
                local = _applied(rule, name)
            if local:
                if set(local) & set("/@"):
                    raise AccessDeniedError(
                        f"hadoop.security.auth_to_local makes {local} of {principal}: no user's name"
                    )
                return local
        raise AccessDeniedError(
            f"No rule of hadoop.security.auth_to_local gives {principal} a user; the realm here is {self._realm}"
        )


def rules_of(text: str) -> Sequence[LocalRule | None]:
    """Parse rules, which blanks or line ends separate; None stands for DEFAULT. Raises: InvalidInputError."""
    rules: list[LocalRule | None] = []
    at = 0
    while at < len(text.rstrip()):
        match = _RULE.match(text, at)
        if match is None or match.end() == at:
            raise InvalidInputError(f"hadoop.security.auth_to_local: {text[at : at + 80].strip()!r} is no rule")
        at = match.end()
        default, parts, form, must, pattern, replacement, repeated, lower = match.groups()
        if default:
            rules.append(None)
            continue
        try:
            rules.append(
                LocalRule(
                    int(parts or 0), form,
                    re.compile(must) if must else None,
                    re.compile(pattern) if pattern else None,
                    _PARAMETER.sub(r"\\\1", replacement or ""),
                    bool(repeated), bool(lower),
                )
            )  # fmt: skip
        except re.error as error:
            raise InvalidInputError(
                f"hadoop.security.auth_to_local: {match[0].strip()!r} is no rule: {error}"
            ) from error
    return rules


def _applied(rule: LocalRule, name: Principal) -> str | None:
    """Return the user by one rule; None: the rule is not for this principal."""
    given = [name.realm, name.service, *([name.host] if name.host else [])]
    if rule.parts != len(given) - 1:
        return None
    text = _PARAMETER.sub(lambda match: given[int(match[1])] if int(match[1]) < len(given) else "", rule.form)
    if rule.match is not None and not rule.match.fullmatch(text):
        return None
    if rule.pattern is not None:
        text = rule.pattern.sub(rule.replacement, text, count=0 if rule.is_repeated else 1)
    return text.lower() if rule.is_lower else text
