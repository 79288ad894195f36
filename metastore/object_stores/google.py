"""Keys of Google's connector for Hadoop (versions 2 and 3), as arguments for gcsfs."""

from collections.abc import Callable, Mapping
from typing import Any

PREFIX, OLD_PREFIX = "fs.gs.", "google.cloud."
KEYS = (
    "project.id",
    "storage.root.url",
    "requester.pays.mode",
    "requester.pays.project.id",
    "auth.type",
    "auth.null.enable",
    "auth.null.enabled",
    "auth.service.account.enable",
    "auth.service.account.email",
    "auth.service.account.json.keyfile",
    "auth.service.account.private.key",
    "auth.service.account.private.key.id",
    "auth.workload.identity.federation.credential.config.file",
)
"""The keys that have an effect here, without their prefix."""
OLD_KEYS = ("service.account.enable", "service.account.json.keyfile")
_ADC = "use a key file (auth.service.account.json.keyfile), the credentials of the environment or of the machine"
_REFUSED: Mapping[str, str] = {
    "auth.access.token.provider": _ADC,
    "auth.access.token.provider.impl": _ADC,
    "auth.service.account.keyfile": "convert the P12 key into a JSON key file: auth.service.account.json.keyfile",
    "auth.impersonation.service.account": "give the metastore's own account the rights",
    "auth.client.id": _ADC,
    "auth.refresh.token": _ADC,
    "encryption.key": "use keys that Cloud KMS keeps, as the bucket's default",
    "proxy.address": "name the proxy in the environment (HTTPS_PROXY)",
}
"""Keys without an equivalent, and what to do instead."""
_TOKENS: Mapping[str, str | None] = {
    "": None,
    "APPLICATION_DEFAULT": "google_default",
    "COMPUTE_ENGINE": "cloud",
    "UNAUTHENTICATED": "anon",
    "SERVICE_ACCOUNT_JSON_KEYFILE": "auth.service.account.json.keyfile",
    "WORKLOAD_IDENTITY_FEDERATION_CREDENTIAL_CONFIG_FILE": "auth.workload.identity.federation.credential.config.file",
}
"""gcsfs's token for a value of auth.type: a word of its own, or the key that names the file."""


def options(keys: Mapping[str, str], _: str) -> dict[str, Any]:
    """Return the arguments for any bucket. Raises: ValueError naming a key without an equivalent."""

    def value(name: str) -> str:
        return (keys.get(PREFIX + name) or keys.get(OLD_PREFIX + name) or "").strip()

    for name, remedy in _REFUSED.items():
        if value(name):
            raise ValueError(f"{PREFIX}{name} cannot be honoured, and is not ignored: {remedy}")
    if value("auth.type") not in _TOKENS:
        raise ValueError(
            f"{PREFIX}auth.type = {value('auth.type')!r} has no equivalent here: expected one of "
            f"{', '.join(filter(None, _TOKENS))}"
        )
    found: dict[str, Any] = {"project": value("project.id"), "token": _token(value)}
    found["endpoint_url"] = value("storage.root.url").rstrip("/")
    if value("requester.pays.mode").upper() in {"AUTO", "ENABLED", "CUSTOM"}:
        found["requester_pays"] = value("requester.pays.project.id") or True
    return {name: kept for name, kept in found.items() if kept}


def _token(value: Callable[[str], str]) -> Any:
    """Return gcsfs's ``token``; None: it looks for credentials itself."""
    if "true" in {value("auth.null.enable").lower(), value("auth.null.enabled").lower()}:
        return "anon"
    token = _TOKENS[value("auth.type")]
    if token is not None and "." in token:
        if not value(token):
            raise ValueError(f"{PREFIX}{token} is not set, and {PREFIX}auth.type = {value('auth.type')} needs it")
        return value(token)
    if token or value("auth.service.account.enable").lower() == "false":
        return token
    if value("auth.service.account.private.key"):
        return {
            "type": "service_account",
            "client_email": value("auth.service.account.email"),
            "private_key_id": value("auth.service.account.private.key.id"),
            "private_key": value("auth.service.account.private.key").replace("\\n", "\n"),
            "token_uri": "https://oauth2.googleapis.com/token",
        }
    return value("auth.service.account.json.keyfile") or None
