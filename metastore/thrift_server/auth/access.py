"""Whether a call is allowed: decided once for every call, before its handler sees it.

Rule: today there are two answers, everybody or only who has proven an identity; roles would go here.
"""

from typing import Protocol

from metastore.thrift_server.auth.identity import Identity


class Access(Protocol):
    """Decides on a call."""

    def refusal(self, identity: Identity, method: str) -> str | None:
        """Why the call is refused, a sentence for the client; None: it is allowed."""


class Everybody:
    """Every client may call everything."""

    def refusal(self, identity: Identity, method: str) -> str | None:  # noqa: ARG002 - the protocol's
        """Nobody is refused."""
        return None


class Identified:
    """Only who has proven an identity."""

    def refusal(self, identity: Identity, method: str) -> str | None:
        """A client without a user is refused everything."""
        if identity.user:
            return None
        return (
            f"{method} is refused: this metastore answers only clients that prove who they are, and the "
            "certificate of this connection names no user."
        )
