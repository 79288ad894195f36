"""RPCs about delegation tokens: of this metastore, and those that a Hive server keeps here for itself."""

from metastore.errors import AccessDeniedError, MetaError, NoSuchObjectError
from metastore.thrift_server.auth.identity import Identity, IdentityProof
from metastore.thrift_server.auth.principals import LocalNames
from metastore.thrift_server.dispatch.call import Call
from metastore.tokens.service import TokenService

_GIVING = frozenset((IdentityProof.KERBEROS, IdentityProof.CERTIFICATE))
"""The proofs after which a client gets a token: a token alone gives no other."""


class TokenHandlers:
    """Tokens that this metastore takes from clients instead of a Kerberos ticket."""

    def __init__(self, tokens: TokenService, local_names: LocalNames | None) -> None:
        """Prepare the handlers. ``local_names``: None where clients do not prove who they are by Kerberos."""
        self._tokens, self._names = tokens, local_names

    def get_delegation_token(self, call: Call, token_owner: str | None, renewer: str | None) -> str:
        """Return a new token for the owner; without one, for the caller."""
        identity, names = self._proven(call)
        if identity.proof not in _GIVING:
            raise AccessDeniedError(
                "Delegation Token can be issued only with kerberos authentication, or a certificate"
            )
        owner = _local(names, token_owner) if token_owner else str(identity.user)
        return self._tokens.get_delegation_token(owner, renewer or "", str(identity.user), call.connection.host)

    def renew_delegation_token(self, call: Call, token_str_form: str | None) -> int:
        """Prolong a token; return the end of its validity."""
        identity, _ = self._proven(call)
        return self._tokens.renew_delegation_token(token_str_form or "", _names(identity))

    def cancel_delegation_token(self, call: Call, token_str_form: str | None) -> None:
        """Cancel a token."""
        identity, _ = self._proven(call)
        self._tokens.cancel_delegation_token(token_str_form or "", _names(identity))

    def _proven(self, call: Call) -> tuple[Identity, LocalNames]:
        """Return the caller with proof. Raises: MetaError, AccessDeniedError."""
        if self._names is None:
            raise MetaError("Delegation tokens need hive.metastore.sasl.enabled=true on this metastore")
        if call.connection.identity.user is None:
            raise AccessDeniedError("Delegation tokens are for clients that prove who they are")
        return call.connection.identity, self._names


class ForeignTokenHandlers:
    """Tokens and master keys of a Hive server (its DBTokenStore); only operators reach them."""

    def __init__(self, tokens: TokenService) -> None:
        """Prepare the handlers. ``tokens`` does the work."""
        self._tokens = tokens

    def add_token(self, _call: Call, token_identifier: str | None, delegation_token: str | None) -> bool:
        """Keep a token."""
        return self._tokens.add_token(token_identifier or "", delegation_token or "")

    def get_token(self, _call: Call, token_identifier: str | None) -> str:
        """Return a token, or ""."""
        return self._tokens.get_token(token_identifier or "")

    def remove_token(self, _call: Call, token_identifier: str | None) -> bool:
        """Remove a token."""
        return self._tokens.remove_token(token_identifier or "")

    def get_all_token_identifiers(self, _call: Call) -> list[str]:
        """Return all identifiers."""
        return self._tokens.get_all_token_identifiers()

    def add_master_key(self, _call: Call, key: str | None) -> int:
        """Keep a master key; return its number."""
        return self._tokens.add_master_key(key or "")

    def update_master_key(self, _call: Call, seq_number: int | None, key: str | None) -> None:
        """Replace a master key."""
        if not self._tokens.update_master_key(seq_number or 0, key or ""):
            raise NoSuchObjectError(f"There is no master key {seq_number}")

    def remove_master_key(self, _call: Call, key_seq: int | None) -> bool:
        """Remove a master key."""
        return self._tokens.remove_master_key(key_seq or 0)

    def get_master_keys(self, _call: Call) -> list[str]:
        """Return all master keys."""
        return self._tokens.get_master_keys()


def _names(identity: Identity) -> frozenset[str]:
    """Return the names by which a caller may be a token's owner or renewer."""
    names = {str(identity.user)}
    if identity.proof is IdentityProof.KERBEROS:
        names.add(identity.principal)
    return frozenset(names)


def _local(names: LocalNames, text: str) -> str:
    return names.of(text) if set(text) & set("/@") else text
