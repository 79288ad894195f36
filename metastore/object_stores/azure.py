"""Keys of Hadoop's connectors for Azure (ABFS, and WASB before it), as arguments for adlfs.

Rule: a key that ends in the account's name wins over the same without.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

PREFIX = "fs.azure."
KEYS = ("account.key", "account.auth.type", "account.oauth.provider.type", "account.oauth2", "sas")
"""The keys that have an effect here, without their prefix; those below one of them too."""
_ACCOUNT = re.compile(r"([\w-]+\.(?:dfs|blob)\.[\w.-]+)$")
_TENANT = re.compile(r"https?://[^/]+/([^/]+)/")
_KEY_PROVIDERS = {"", "SimpleKeyProvider"}
_SAS_PROVIDERS = {"", "FixedSASTokenProvider"}

Lookup = Callable[[str], str]


def options(keys: Mapping[str, str], place: str) -> dict[str, Any]:
    """Return the arguments for ``container@account``. Raises: ValueError naming a key without an equivalent."""
    container, _, account = place.rpartition("@")

    def value(name: str) -> str:
        spellings = dict.fromkeys((account, account.replace(".blob.", ".dfs."), account.replace(".dfs.", ".blob.")))
        found = (keys.get(f"{PREFIX}{name}.{each}") for each in spellings if each)
        return (next(filter(None, found), None) or keys.get(PREFIX + name) or "").strip()

    _require(value, "account.keyprovider", _KEY_PROVIDERS)
    _require(value, "sas.token.provider.type", _SAS_PROVIDERS)
    kind = value("account.auth.type") or "SharedKey"
    if kind == "OAuth":
        return _oauth(value)
    sas = value("sas.fixed.token") or value(f"sas.{container}")
    if kind == "SAS" or (kind == "SharedKey" and sas and not value("account.key")):
        if not sas and account:
            raise ValueError(f"{PREFIX}sas.fixed.token is not set, and {PREFIX}account.auth.type = SAS needs it")
        return {"sas_token": sas} if sas else {}
    if kind != "SharedKey":
        raise ValueError(
            f"{PREFIX}account.auth.type = {kind!r} has no equivalent here: expected SharedKey, OAuth or SAS"
        )
    return {"account_key": key} if (key := value("account.key")) else {}


def accounts(keys: Mapping[str, str]) -> Iterator[str]:
    """Yield the storage accounts that occur in the names of these settings."""
    yield from {found[1] for found in map(_ACCOUNT.search, keys) if found}


def _require(value: Lookup, name: str, known: set[str]) -> None:
    chosen = value(name).rpartition(".")[2]
    if chosen not in known:
        raise ValueError(f"{PREFIX}{name} names {chosen}, which has no equivalent here: expected {max(known)}")


def _oauth(value: Lookup) -> dict[str, Any]:
    provider = value("account.oauth.provider.type").rpartition(".")[2] or "ClientCredsTokenProvider"
    name = "account.oauth2"
    client = value(f"{name}.client.id")
    match provider:
        case "ClientCredsTokenProvider":
            tenant = _TENANT.match(value(f"{name}.client.endpoint"))
            secret = value(f"{name}.client.secret")
            if not (tenant and client and secret):
                raise ValueError(
                    f"{PREFIX}{name}.client.endpoint (https://login.microsoftonline.com/TENANT/oauth2/token), "
                    ".client.id and .client.secret must all be set for OAuth"
                )
            return {"tenant_id": tenant[1], "client_id": client, "client_secret": secret}
        case "MsiTokenProvider":
            return {"credential": ("ManagedIdentityCredential", (("client_id", client),))}
        case "WorkloadIdentityTokenProvider":
            wanted = (("client_id", client), ("tenant_id", value(f"{name}.msi.tenant")),
                      ("token_file_path", value(f"{name}.token.file")))  # fmt: skip
            return {"credential": ("WorkloadIdentityCredential", wanted)}
    raise ValueError(
        f"{PREFIX}account.oauth.provider.type names {provider}, which has no equivalent here: expected "
        "ClientCredsTokenProvider, MsiTokenProvider or WorkloadIdentityTokenProvider"
    )
