"""Settings of the proofs that clients give of who they are, by Hive's and Hadoop's own keys.

Rule: what a key asks for is done or the start stops.
"""

from dataclasses import dataclass
from datetime import timedelta

from metastore.config import values
from metastore.config.keys import inert, key
from metastore.config.values import choice, duration

_LAYERS = ("authentication", "integrity", "privacy")


def _layers(text: str) -> tuple[str, ...]:
    words = tuple(word.strip().lower() for word in text.split(",") if word.strip())
    if not words or set(words) - set(_LAYERS):
        raise ValueError(text)
    return words


def _patterns(text: str) -> tuple[str, ...]:
    patterns = tuple(word for word in text.split(":") if word)
    if any("%s" not in pattern for pattern in patterns):
        raise ValueError(text)
    return patterns


@dataclass(frozen=True)
class IdentitySettings:
    """Kerberos, delegation tokens and passwords on the Thrift port."""

    sasl: bool = key(
        values.FLAG,
        "hive.metastore.sasl.enabled",
        "false",
        "Clients prove who they are by Kerberos or with a delegation token. Client certificates count besides; a call "
        "without any proof is refused, but those of the server's own user on its own machine.",
    )
    keytab: str = key(
        values.TEXT, "hive.metastore.kerberos.keytab.file", "", "The keytab with the server's Kerberos keys."
    )
    principal: str = key(
        values.TEXT,
        "hive.metastore.kerberos.principal",
        "hive-metastore/_HOST@EXAMPLE.COM",
        "The server's Kerberos principal; _HOST stands for the name of its machine.",
    )
    authentication: str = key(
        choice("nosasl", "none", "kerberos", "config", "ldap", "custom"),
        "hive.metastore.authentication",
        "nosasl",
        "How clients log in where hive.metastore.sasl.enabled is false: kerberos as if it were true; config, ldap and "
        "custom by user and password (SASL PLAIN); none and nosasl: they do not. JWT is not built.",
    )
    protection: tuple[str, ...] = key(
        values.ValueKind("words of authentication, integrity and privacy, separated by commas", _layers, ",".join),
        "hadoop.rpc.protection",
        "authentication",
        "The protections that Kerberos may agree on with a client: none, against changes, against readers.",
    )
    auth_to_local: str = key(
        values.TEXT,
        "hadoop.security.auth_to_local",
        "DEFAULT",
        "Rules, one a line, that make the name of a user from a Kerberos principal; DEFAULT takes those of the "
        "server's own realm.",
    )
    key_interval: timedelta = key(
        duration("ms", timedelta(seconds=1)),
        "hive.cluster.delegation.key.update-interval",
        "1d",
        "The time after which delegation tokens are signed with a new master key.",
        "metastore.cluster.delegation.key.update-interval",
    )
    token_renewal: timedelta = key(
        duration("ms", timedelta(seconds=1)),
        "hive.cluster.delegation.token.renew-interval",
        "1d",
        "The time for which a delegation token is valid, and for which a renewal prolongs it.",
        "metastore.cluster.delegation.token.renew-interval",
    )
    token_lifetime: timedelta = key(
        duration("ms", timedelta(seconds=1)),
        "hive.cluster.delegation.token.max-lifetime",
        "7d",
        "The time after which a delegation token cannot be renewed.",
        "metastore.cluster.delegation.token.max-lifetime",
    )
    token_store: str = inert(
        values.TEXT,
        "hive.cluster.delegation.token.store.class",
        "",
        "Tokens are in PostgreSQL, where every replica and each restart finds them.",
        "metastore.cluster.delegation.token.store.class",
    )

    users_file: str = key(
        values.TEXT,
        "metastore.authentication.users.file",
        "",
        "The users of hive.metastore.authentication=config: a line user:HASH for each, as "
        "`metastore config hash-password` prints it. Changes are taken up at once. Hive: no such key.",
    )
    custom: str = key(
        values.TEXT,
        "hive.metastore.custom.authentication.class",
        "",
        "The check of hive.metastore.authentication=custom: module:function of Python, which gets user and password. "
        "Hive: a class of Java.",
    )
    plain_in_the_clear: bool = key(
        values.FLAG,
        "metastore.authentication.without.tls",
        "false",
        "Take passwords from connections without TLS. Hive: always does.",
    )
    ldap_urls: tuple[str, ...] = key(
        values.ValueKind(
            "addresses ldap://HOST or ldaps://HOST, separated by blanks", lambda text: tuple(text.split()), " ".join
        ),
        "hive.metastore.authentication.ldap.url",
        "",
        "The directory servers of hive.metastore.authentication=ldap; the next is asked where one does not answer.",
    )
    ldap_authorities: str = key(
        values.TEXT,
        "metastore.authentication.ldap.ca.file",
        "",
        "A PEM file with the authorities that sign the directory servers' certificates (ldaps); empty: those that the "
        "operating system trusts. Hive: no such key.",
    )
    ldap_base: str = key(
        values.TEXT, "hive.metastore.authentication.ldap.baseDN", "", "The name below which the directory has users."
    )
    ldap_domain: str = key(
        values.TEXT,
        "hive.metastore.authentication.ldap.Domain",
        "",
        "The domain of Active Directory: USER@DOMAIN logs in.",
    )
    ldap_user_patterns: tuple[str, ...] = key(
        values.ValueKind("names with %s for the user, separated by colons", _patterns, ":".join),
        "hive.metastore.authentication.ldap.userDNPattern",
        "",
        "Names by which users log in, %s for the user.",
    )
    ldap_guid_key: str = key(
        values.TEXT, "hive.metastore.authentication.ldap.guidKey", "uid", "The attribute with a user's name."
    )
    ldap_user_filter: tuple[str, ...] = key(
        values.WORDS, "hive.metastore.authentication.ldap.userFilter", "", "The users who may log in; empty: all."
    )
    ldap_group_filter: tuple[str, ...] = key(
        values.WORDS,
        "hive.metastore.authentication.ldap.groupFilter",
        "",
        "The groups whose members may log in; empty: everybody.",
    )
    ldap_group_base: str = key(
        values.TEXT,
        "metastore.authentication.ldap.groupDN",
        "",
        "The name below which the directory has groups; empty: that of users. Hive: groupDNPattern.",
    )
    ldap_group_key: str = key(
        values.TEXT, "metastore.authentication.ldap.groupKey", "cn", "The attribute with a group's name. Hive: guidKey."
    )
    ldap_group_member_key: str = key(
        values.TEXT,
        "hive.metastore.authentication.ldap.groupMembershipKey",
        "member",
        "The attribute with the members of a group.",
    )
    ldap_group_class: str = key(
        values.TEXT, "hive.metastore.authentication.ldap.groupClassKey", "groupOfNames", "The class of groups."
    )
    ldap_bind_user: str = key(
        values.TEXT,
        "hive.metastore.authentication.ldap.binddn",
        "",
        "The name with which the directory is searched for a user's name; empty: the name follows from the pattern.",
    )
    ldap_bind_password: str = key(
        values.TEXT, "hive.metastore.authentication.ldap.bindpw", "", "The password of that name.", secret=True
    )

    @property
    def uses_kerberos(self) -> bool:
        """True if clients prove who they are by Kerberos or a token."""
        return self.sasl or self.authentication == "kerberos"

    @property
    def uses_passwords(self) -> bool:
        """True if clients log in by user and password."""
        return not self.uses_kerberos and self.authentication in {"config", "ldap", "custom"}

    @property
    def requires_proof(self) -> bool:
        """True if a call without a proven user is refused."""
        return self.uses_kerberos or self.uses_passwords
