"""TLS settings and certificates of a client of the metastore: Hive's own keys, from any source of settings.

Rule: the keys are those of Hive's clients (``hive.metastore.use.SSL``, ``hive.metastore.truststore.path``), so that a
Spark session whose own metastore client uses TLS needs nothing more. Ours are the client's own certificate and the
check of the host's name, which Hive's clients do not have.
"""

from collections.abc import Callable, Mapping

from metastore.tls.contexts import ClientSide

USE_SSL = "hive.metastore.use.SSL"
TRUSTSTORE, TRUSTSTORE_PASSWORD = "hive.metastore.truststore.path", "hive.metastore.truststore.password"
KEYSTORE, KEYSTORE_PASSWORD = "metastore.client.keystore.path", "metastore.client.keystore.password"
VERIFY_HOSTNAME = "metastore.client.ssl.verify.hostname"
KEYS = (USE_SSL, TRUSTSTORE, TRUSTSTORE_PASSWORD, KEYSTORE, KEYSTORE_PASSWORD, VERIFY_HOSTNAME)


def of_values(value: Callable[[str], str | None]) -> ClientSide | None:
    """Return the TLS settings, None for no TLS. ``value``: the text that a key is set to, None if it is not set."""
    if not _is_true(value(USE_SSL)):
        return None
    return ClientSide(
        _paths(value(TRUSTSTORE)),
        value(TRUSTSTORE_PASSWORD) or "",
        _paths(value(KEYSTORE)),
        value(KEYSTORE_PASSWORD) or "",
        verify_hostname=_is_true(value(VERIFY_HOSTNAME) or "true"),
    )


def of_environment(environ: Mapping[str, str]) -> ClientSide | None:
    """Return the settings as ``of_values``, from METASTORE_USE_SSL, METASTORE_TRUSTSTORE_PATH and kin."""
    return of_values(lambda key: environ.get(variable(key)))


def variable(key: str) -> str:
    """Return the environment variable of a key in ``KEYS``."""
    return key.removeprefix("hive.").replace(".", "_").upper()


def _paths(text: str | None) -> tuple[str, ...]:
    return tuple(path.strip() for path in (text or "").split(",") if path.strip())


def _is_true(text: str | None) -> bool:
    return (text or "").strip().lower() == "true"
