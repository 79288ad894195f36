"""Credentials that are looked for: chains of AWS's in the order of Hadoop's setting, identities of Azure.

Rule: each is built once for the process, so that fsspec finds its file systems again, and when a file is asked for:
the libraries need not be there for stores that nobody uses. Credentials that expire are fetched anew.
"""

from functools import cache
from typing import Any, NamedTuple


class Keys(NamedTuple):
    """A pair of keys, with the token of temporary ones."""

    key: str
    secret: str
    token: str = ""

    def __repr__(self) -> str:
        """Return the key alone: secrets are in no message."""
        return f"Keys({self.key!r})"


class Role(NamedTuple):
    """A role that is assumed. ``source``: the credentials that may assume it; ``more``: arguments of the call."""

    arn: str
    source: "tuple[Link, ...]"
    endpoint: str
    region: str
    seconds: int
    more: tuple[tuple[str, str], ...]


Link = Keys | Role | str
"""A text is a provider of botocore, by its METHOD; ``default`` stands for all of them."""


@cache
def session(links: tuple[Link, ...]) -> Any:
    """Return a session of aiobotocore whose credentials come from the chain."""
    from aiobotocore.credentials import AioCredentialResolver
    from aiobotocore.session import AioSession

    made = AioSession()
    known = made.get_component("credential_provider").providers
    providers = [provider for link in links for provider in _providers(link, known)]
    made.register_component("credential_provider", AioCredentialResolver(providers))
    return made


@cache
def azure_credential(name: str, arguments: tuple[tuple[str, str], ...]) -> Any:
    """Return a credential of azure-identity; arguments without a value are left out."""
    import azure.identity.aio

    return getattr(azure.identity.aio, name)(**{key: text for key, text in arguments if text})


def _providers(link: Link, known: list[Any]) -> list[Any]:
    if isinstance(link, Keys):
        return [_Given(link)]
    if isinstance(link, Role):
        return [_Assumed(link)]
    return [provider for provider in known if link in {"default", provider.METHOD}]


class _Given:
    """A provider of one pair of keys."""

    METHOD = CANONICAL_NAME = "keys"

    def __init__(self, keys: Keys) -> None:
        self._keys = keys

    async def load(self) -> Any:
        from aiobotocore.credentials import AioCredentials

        return AioCredentials(self._keys.key, self._keys.secret, self._keys.token or None, method=self.METHOD)


class _Assumed:
    """A provider of the keys of a role, which are fetched when they are needed, and again before they expire."""

    METHOD = CANONICAL_NAME = "assumed-role"

    def __init__(self, role: Role) -> None:
        self._role = role

    async def load(self) -> Any:
        from aiobotocore.credentials import AioAssumeRoleCredentialFetcher, AioDeferredRefreshableCredentials

        role, source = self._role, session(self._role.source)
        credentials = await source.get_credentials()
        if credentials is None:
            return None

        def client(service: str, **keys: Any) -> Any:
            return source.create_client(
                service, endpoint_url=role.endpoint or None, region_name=role.region or None, **keys
            )

        fetcher = AioAssumeRoleCredentialFetcher(
            client, credentials, role.arn, extra_args={"DurationSeconds": role.seconds, **dict(role.more)}
        )
        return AioDeferredRefreshableCredentials(fetcher.fetch_credentials, self.METHOD)
