"""Keys of Hadoop's S3A, as arguments for s3fs. Source: Hadoop's `Constants.java` and its page on S3A's settings.

Rule: ``fs.s3a.bucket.BUCKET.NAME`` wins over ``fs.s3a.NAME``. A chain of credential providers is asked in its order.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import quote

from metastore.object_stores.credentials import Keys, Link, Role

PREFIX = "fs.s3a."
_BUCKET = f"{PREFIX}bucket."
KEYS = (
    "endpoint",
    "path.style.access",
    "connection.ssl.enabled",
    "access.key",
    "secret.key",
    "session.token",
    "aws.credentials.provider",
    "assumed.role",
    "security.credential.provider.path",
    "proxy.host",
    "proxy.port",
    "proxy.username",
    "proxy.password",
    "requester.pays.enabled",
    "acl.default",
    "encryption",
    "server-side-encryption-algorithm",
    "server-side-encryption.key",
)
"""The keys that have an effect here, without their prefix; those below one of them too."""

_PROVIDERS: Mapping[str, tuple[str, ...]] = {
    "SimpleAWSCredentialsProvider": ("keys",),
    "BasicAWSCredentialsProvider": ("keys",),
    "TemporaryAWSCredentialsProvider": ("keys with a token",),
    "AssumedRoleCredentialProvider": ("role",),
    "AnonymousAWSCredentialsProvider": ("anonymous",),
    "AnonymousCredentialsProvider": ("anonymous",),
    "EnvironmentVariableCredentialsProvider": ("env",),
    "IAMInstanceCredentialsProvider": ("container-role", "iam-role"),
    "SharedInstanceProfileCredentialsProvider": ("container-role", "iam-role"),
    "InstanceProfileCredentialsProvider": ("iam-role",),
    "EC2ContainerCredentialsProviderWrapper": ("container-role", "iam-role"),
    "ContainerCredentialsProvider": ("container-role",),
    "WebIdentityTokenCredentialsProvider": ("assume-role-with-web-identity",),
    "WebIdentityTokenFileCredentialsProvider": ("assume-role-with-web-identity",),
    "ProfileCredentialsProvider": ("shared-credentials-file", "config-file"),
    "ProfileAWSCredentialsProvider": ("shared-credentials-file", "config-file"),
    "DefaultAWSCredentialsProviderChain": ("default",),
    "DefaultCredentialsProvider": ("default",),
}
"""The links of a chain for a class of Hadoop or of AWS (SDK 1 and 2), whatever its package; the rest are botocore's."""
_HADOOPS_CHAIN = "TemporaryAWSCredentialsProvider,SimpleAWSCredentialsProvider,DefaultCredentialsProvider"
"""The chain when none is set. Behind the keys Hadoop asks the environment and the machine, as AWS's chain does."""
_ROLES_CHAIN = "SimpleAWSCredentialsProvider,EnvironmentVariableCredentialsProvider"

_ENCRYPTIONS: Mapping[str, dict[str, str]] = {
    "": {},
    "AES256": {"ServerSideEncryption": "AES256"},
    "SSE-KMS": {"ServerSideEncryption": "aws:kms"},
    "DSSE-KMS": {"ServerSideEncryption": "aws:kms:dsse"},
}
_REFUSED: Mapping[str, str] = {
    "accesspoint.arn": "write the access point's alias as the bucket of the locations instead",
    "accesspoint.required": "write the access point's alias as the bucket of the locations instead",
    "access.grants.enabled": "give the metastore's role the rights itself",
    "delegation.token.binding": "give the metastore keys or a role of its own",
    "custom.signers": "requests are signed with AWS's signature version 4",
    "signing-algorithm": "requests are signed with AWS's signature version 4",
    "encryption.context": "leave it out",
    "proxy.domain": "a proxy with NTLM cannot be used; name one without",
}
"""Keys without an equivalent, and what to do instead."""
_HARMLESS = {"", "false", "aws4signertype", "awss3v4signertype"}
"""Values of such keys that ask for nothing else than what is done here."""
_AMAZONS = re.compile(r"s3[.-]([a-z]{2}(?:-[a-z]+)+-\d)\.amazonaws\.com(?:\.cn)?")

Lookup = Callable[[str], str]


def options(keys: Mapping[str, str], bucket: str) -> dict[str, Any]:
    """Return the arguments for a bucket. Raises: ValueError naming a key without an equivalent."""

    def value(name: str) -> str:
        return (keys.get(f"{_BUCKET}{bucket}.{name}") or keys.get(PREFIX + name) or "").strip()

    for name, remedy in _REFUSED.items():
        if value(name).lower() not in _HARMLESS:
            raise ValueError(f"{PREFIX}{name} cannot be honoured, and is not ignored: {remedy}")
    found: dict[str, Any] = {**_place(value), **_credentials(value)}
    if is_true(value("requester.pays.enabled")):
        found["requester_pays"] = True
    if more := {**_encryption(value), **_acl(value)}:
        found["s3_additional_kwargs"] = more
    return found


def buckets(keys: Mapping[str, str]) -> Iterator[str]:
    """Yield the possible bucket names in per-bucket keys; both bucket and key names may contain dots."""
    for name in keys:
        words = name.removeprefix(_BUCKET).split(".") if name.startswith(_BUCKET) else []
        yield from (".".join(words[:at]) for at in range(1, len(words)))


def is_true(text: str) -> bool:
    """Return True for Hadoop's true."""
    return text.lower() == "true"


def _place(value: Lookup) -> dict[str, Any]:
    """Return where the store is, and how its buckets are addressed."""
    client, config = {}, dict[str, Any]()
    endpoint, region = value("endpoint").rstrip("/"), value("endpoint.region")
    amazons = _AMAZONS.fullmatch(endpoint.partition("://")[2] or endpoint)
    if amazons:
        region = region or amazons[1]
    elif endpoint and not endpoint.endswith("s3.amazonaws.com"):
        scheme = "http" if value("connection.ssl.enabled").lower() == "false" else "https"
        client["endpoint_url"] = endpoint if "://" in endpoint else f"{scheme}://{endpoint}"
    if region and region != "sdk":  # Hadoop writes "sdk" for the region that AWS's client finds by itself.
        client["region_name"] = region
    if style := {"true": "path", "false": "virtual"}.get(value("path.style.access").lower()):
        config["s3"] = {"addressing_style": style}
    if is_true(value("endpoint.fips")):
        config["use_fips_endpoint"] = True
    if host := value("proxy.host"):
        config["proxies"] = dict.fromkeys(("http", "https"), _proxy(value, host))
    found = {name: kept for name, kept in (("client_kwargs", client), ("config_kwargs", config)) if kept}
    return found if value("connection.ssl.enabled").lower() != "false" else {**found, "use_ssl": False}


def _proxy(value: Lookup, host: str) -> str:
    user, password = quote(value("proxy.username"), safe=""), quote(value("proxy.password"), safe="")
    port = value("proxy.port") or "80"
    return f"http://{f'{user}:{password}@' if user else ''}{host}:{port}"


def _encryption(value: Lookup) -> dict[str, str]:
    name = value("encryption.algorithm") or value("server-side-encryption-algorithm")
    if name not in _ENCRYPTIONS:
        raise ValueError(
            f"{PREFIX}encryption.algorithm = {name!r} cannot be honoured, and is not ignored: expected AES256, SSE-KMS "
            "or DSSE-KMS, where the store has the keys"
        )
    chosen, key = _ENCRYPTIONS[name], value("encryption.key") or value("server-side-encryption.key")
    return {**chosen, "SSEKMSKeyId": key} if key and "KMS" in name else chosen


def _acl(value: Lookup) -> dict[str, str]:
    """Return the canned ACL: Hadoop writes BucketOwnerFullControl for bucket-owner-full-control."""
    name = value("acl.default")
    return {"ACL": re.sub(r"(?<!^)(?=[A-Z])", "-", name).lower()} if name else {}


def _credentials(value: Lookup) -> dict[str, Any]:
    """Return s3fs's options for credentials: keys, none if s3fs uses AWS's default chain, or another chain's links."""
    match links := _links(value, "aws.credentials.provider", _HADOOPS_CHAIN):
        case (Keys(key, secret, token),):
            return {"key": key, "secret": secret, **({"token": token} if token else {})}
        case ("default",):
            return {}
        case ("anonymous",):
            return {"anon": True}
    if "anonymous" in links:
        raise ValueError(
            f"{PREFIX}aws.credentials.provider cannot be honoured: it asks without credentials (Anonymous) where "
            "others find none, which only each request shows; name one of them alone"
        )
    return {"session": links}


def _links(value: Lookup, name: str, chain: str) -> tuple[Link, ...]:
    """Return the providers of a chain that may have credentials, up to the first that certainly has them."""
    found: list[Link] = []
    for provider in re.split(r"[\s,]+", value(name) or chain):
        kinds = _PROVIDERS.get(provider.rpartition(".")[2])
        if provider and kinds is None:
            raise ValueError(
                f"{PREFIX}{name} names {provider}, which has no equivalent here: expected one of "
                f"{', '.join(sorted(_PROVIDERS))}"
            )
        for kind in kinds or ():
            link = _link(value, kind)
            if link is not None:
                found.append(link)
            if isinstance(link, Keys) or link in {"anonymous", "default"}:
                return tuple(found)
    return tuple(found)


def _link(value: Lookup, kind: str) -> Link | None:
    if kind == "role":
        return _role(value)
    if not kind.startswith("keys"):
        return kind
    token = value("session.token") if kind == "keys with a token" else ""
    keys = Keys(value("access.key"), value("secret.key"), token)
    return keys if keys.key and keys.secret and (token or kind == "keys") else None


def _role(value: Lookup) -> Role:
    arn = value("assumed.role.arn")
    if not arn:
        raise ValueError(f"{PREFIX}assumed.role.arn is not set, and AssumedRoleCredentialProvider needs it")
    source = _links(value, "assumed.role.credentials.provider", _ROLES_CHAIN)
    if any(isinstance(link, Role) or link == "anonymous" for link in source):
        raise ValueError(f"{PREFIX}assumed.role.credentials.provider must name providers of keys")
    endpoint = value("assumed.role.sts.endpoint")
    wanted = {
        "RoleSessionName": value("assumed.role.session.name") or "metastore",
        "Policy": value("assumed.role.policy"),
        "ExternalId": value("assumed.role.external.id"),
    }
    return Role(
        arn,
        source,
        endpoint if "://" in endpoint or not endpoint else f"https://{endpoint}",
        value("assumed.role.sts.endpoint.region") or value("endpoint.region"),
        _seconds(value("assumed.role.session.duration") or "30m"),
        tuple((name, text) for name, text in wanted.items() if text),
    )


def _seconds(text: str) -> int:
    match = re.fullmatch(r"(\d+)\s*([smhd]?)", text)
    if not match:
        raise ValueError(f"{PREFIX}assumed.role.session.duration = {text!r} is no time span: expected 30m or 1h")
    return int(match[1]) * {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}[match[2]]
