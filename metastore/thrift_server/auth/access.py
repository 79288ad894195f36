"""Whether a call is allowed: asked once for every call, before its handler sees it.

Rule: today there are two answers, everybody or only who has proven an identity; roles would go here.
"""

from typing import Protocol

from metastore.thrift_server.auth.identity import Identity


class Access(Protocol):
    """Decides on a call."""

    def refusal(self, identity: Identity, method: str) -> str | None:
        """Why the call is refused, a sentence for the client; None: it is allowed."""


class Everybody:
    """Whoever can connect may call everything."""

    def refusal(self, identity: Identity, method: str) -> str | None:  # noqa: ARG002 - the protocol's
        """Nobody is refused."""
        return None


class Identified:
    """Only who has proven an identity."""

    def refusal(self, identity: Identity, method: str) -> str | None:
        """Whoever has none is refused everything."""
        if identity.user:
            return None
        return (
            f"{method} is refused: this metastore answers only clients that prove who they are, and the "
            "certificate of this connection names no user."
        )
