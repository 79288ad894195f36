"""Certificates for everybody of a run: servers, workers and their jobs, clients."""

from pathlib import Path

from metastore.client import tls
from metastore.tls.contexts import ClientSide
from tests.support.certificates import Authority


class Secured:
    """What each side is set to, so that nobody speaks in the clear or without a certificate."""

    def __init__(self, directory: Path) -> None:
        authority = Authority(directory)
        own, clients = authority.server(), authority.issue("client")
        self.server = {"hive.metastore.use.SSL": "true", "metastore.ssl.client.certificates": "required",
                       "hive.metastore.keystore.path": str(own), "hive.metastore.truststore.path": str(authority.path)}
        self.client = ClientSide(truststore=(str(authority.path),), keystore=(str(clients),))
        self.environment = {tls.variable(key): value for key, value in (
            (tls.USE_SSL, "true"), (tls.TRUSTSTORE, str(authority.path)), (tls.KEYSTORE, str(clients)))}
