"""URLs of databases: libpq's own, and those of PostgreSQL's driver for Java, which Hive's settings have.

Rule: a parameter means what it means to the driver, or the URL is refused; parameters that tune the driver are dropped.
User and password may come from keys of their own.
"""

from collections.abc import Iterator, Mapping
from urllib.parse import parse_qsl, quote, urlencode

ONLY_POSTGRES = (
    "PostgreSQL is the only database that can be used; a Hive metastore on MySQL, Oracle, SQL Server or Derby can stay "
    "behind this service (metastore.upstream.uris, docs/how-to/in-front-of-an-existing-metastore.md), and importing "
    "from one comes in a later release"
)


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_SAME = _words(
    "user password host port dbname sslmode sslrootcert sslcert sslkey sslpassword gssencmode "
    "connect_timeout options application_name target_session_attrs keepalives passfile"
)
"""Parameters that have one name and one meaning in both."""
_RENAMED: Mapping[str, str] = {
    "ApplicationName": "application_name",
    "loginTimeout": "connect_timeout",
    "connectTimeout": "connect_timeout",
    "channelBinding": "channel_binding",
}
_WORDS: Mapping[tuple[str, str], tuple[str, str] | None] = {
    ("ssl", "true"): ("sslmode", "verify-full"),
    ("ssl", ""): ("sslmode", "verify-full"),
    ("ssl", "false"): None,
    ("sslfactory", "org.postgresql.ssl.NonValidatingFactory"): ("sslmode", "require"),
    ("sslfactory", "org.postgresql.ssl.DefaultJavaSSLFactory"): ("sslrootcert", "system"),
    ("sslfactory", "org.postgresql.ssl.LibPQFactory"): None,
    ("tcpKeepAlive", "true"): ("keepalives", "1"),
    ("tcpKeepAlive", "false"): None,
    ("loadBalanceHosts", "true"): ("load_balance_hosts", "random"),
    ("loadBalanceHosts", "false"): None,
    ("targetServerType", "any"): None,
    ("targetServerType", "primary"): ("target_session_attrs", "read-write"),
    ("targetServerType", "master"): ("target_session_attrs", "read-write"),
    ("gssEncMode", "disable"): ("gssencmode", "disable"),
    ("readOnly", "false"): None,
}
"""Parameters by their values; None: libpq does so anyway."""
_TUNING = _words(
    "prepareThreshold preparedStatementCacheQueries preparedStatementCacheSizeMiB databaseMetadataCacheFields "
    "databaseMetadataCacheFieldsMiB defaultRowFetchSize reWriteBatchedInserts stringtype binaryTransfer "
    "binaryTransferEnable binaryTransferDisable socketTimeout cancelSignalTimeout sendBufferSize receiveBufferSize "
    "autosave cleanupSavepoints logUnclosedConnections loggerLevel loggerFile hostRecheckSeconds tcpNoDelay "
    "assumeMinServerVersion allowEncodingChanges escapeSyntaxCallMode adaptiveFetch preferQueryMode "
    "createDatabaseIfNotExist useUnicode characterEncoding"
)
"""Parameters that say how the driver works, or what this service sends itself."""


def libpq_url(text: str) -> str:
    """Return the URL for libpq; "" for none. Raises: ValueError."""
    text = text.strip()
    if not text.startswith("jdbc:"):
        return f"postgresql://{_behind(text)}" if text else ""
    rest, _, query = text.removeprefix("jdbc:").partition("?")
    if rest.startswith("postgresql:") and not rest.startswith("postgresql://"):
        rest = f"postgresql://localhost/{rest.removeprefix('postgresql:').lstrip('/')}"
    place = _behind(rest).rstrip("/")
    parameters = dict(_parameters(parse_qsl(query, keep_blank_values=True, strict_parsing=bool(query))))
    return f"postgresql://{place}{'?' if parameters else ''}{urlencode(parameters, quote_via=quote)}"


def _behind(text: str) -> str:
    scheme, mark, rest = text.partition("://")
    if not mark or scheme not in {"postgresql", "postgres"}:
        raise ValueError(text)
    return rest


def _parameters(given: list[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Yield libpq's parameters; a mode of TLS that is named wins over ``ssl=true``."""
    for name, value in sorted(given, key=lambda each: each[0] == "sslmode"):
        if name in _SAME or name in _RENAMED:
            yield _RENAMED.get(name, name), value
        elif name == "currentSchema":
            yield "options", f"-c search_path={value.replace(' ', '')}"
        elif (name, value) in _WORDS:
            if (word := _WORDS[name, value]) is not None:
                yield word
        elif name not in _TUNING:
            raise ValueError(name)
