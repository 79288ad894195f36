"""Access control: one decision for every call, before its handler gets it.

Rule: only operators may make calls that cannot be undone, or that speak for another client. All other calls are for
every client, or only for clients with a proven identity; rights would go here.
"""

from collections.abc import Callable, Collection, Sequence
from typing import Any, Protocol

from metastore.thrift_server.auth.identity import Identity, IdentityProof
from metastore.thrift_server.auth.local_user import is_own_user_at

OPERATORS_ONLY = frozenset(
    (
        "seed_txn_id",
        "seed_write_id",
        "repl_tbl_writeid_state",
        "metastore_act_for",
        # The tokens and keys of Hive servers: whoever has them can act for their users.
        "add_token",
        "get_token",
        "remove_token",
        "get_all_token_identifiers",
        "add_master_key",
        "update_master_key",
        "remove_master_key",
        "get_master_keys",
        # Calls of remote Workers: a remote Worker renews no lease, so its caller could hold a claim for ever.
        "find_next_compact",
        "find_next_compact2",
        "update_compactor_state",
        "mark_compacted",
        "mark_cleaned",
        "mark_failed",
        "mark_refused",
        "set_hadoop_jobid",
    )
)
"""Methods that only operators may call."""
REPLICATION = {"open_txns", "allocate_table_write_ids", "commit_txn", "abort_txn"}
"""The methods that only operators may call with fields about replication."""


class Access(Protocol):
    """A decision about calls."""

    def refusal(self, identity: Identity, method: str, arguments: Sequence[Any] = ()) -> str | None:
        """Return why the call is refused, a sentence for the client; None: it is allowed."""


class Everybody:
    """Access for every client to every call."""

    def refusal(self, identity: Identity, method: str, arguments: Sequence[Any] = ()) -> str | None:  # noqa: ARG002 - the protocol's
        """Return None: no call is refused."""
        return None


class Identified:
    """Access for clients with a proven identity."""

    def refusal(self, identity: Identity, method: str, arguments: Sequence[Any] = ()) -> str | None:  # noqa: ARG002 - the protocol's
        """Refuse everything to a client without a user."""
        if identity.user:
            return None
        return (
            f"{method} is refused: this metastore answers only clients that prove who they are, and this connection "
            "has no login (Kerberos, delegation token), and its certificate, if any, names no user."
        )


class Guarded:
    """Access as another rule gives it, plus operators; calls for operators are for no other client."""

    def __init__(
        self, others: Access, operators: Collection[str], is_own_user: Callable[[str], bool] = is_own_user_at
    ) -> None:
        """Prepare the rule.

        ``operators``: users with proof; ``is_own_user``: True if a process at an address is our user's.
        """
        self._others, self._operators, self._is_own_user = others, frozenset(operators), is_own_user

    def refusal(self, identity: Identity, method: str, arguments: Sequence[Any] = ()) -> str | None:
        """Return why the call is refused; the caller is looked up only if that matters."""
        if not is_operators(method, arguments):
            return self._others.refusal(identity, method, arguments)
        if (identity.user and identity.user in self._operators) or (
            identity.proof is not IdentityProof.PLANNER and self._is_own_user(identity.address)
        ):
            return None
        return (
            f"{method} is refused: what it does cannot be undone, or is for somebody else, so only operators may. "
            "Call it on the server's machine as the server's user, or list the user of your certificate in "
            "hive.users.in.admin.role."
        )


def is_operators(method: str, arguments: Sequence[Any]) -> bool:
    """Return True if a call is for operators, by its method or by its fields about replication."""
    if method in OPERATORS_ONLY:
        return True
    sent = arguments[0] if method in REPLICATION and arguments else None
    return getattr(sent, "replPolicy", None) is not None or getattr(sent, "replLastIdInfo", None) is not None
