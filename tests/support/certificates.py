"""A certificate authority of the tests, and what it signs."""

from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

DAY = timedelta(days=1)


class Authority:
    """Signs certificates and writes them as PEM files into a directory."""

    def __init__(self, directory: Path, name="Test CA"):
        self.directory, self._name = directory, x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
        self._key = ec.generate_private_key(ec.SECP256R1())
        self.certificate = self._signed(self._name, self._key.public_key(), authority=True)
        self.path = directory / f"{name.replace(' ', '-')}.pem"
        self.path.write_bytes(self.certificate.public_bytes(Encoding.PEM))

    def issue(self, name, *alternatives, file=None, ended=False, also=()):
        """Issue a certificate and return the PEM file with it and its key; ``alternatives``: addresses, names, or ``user@host``.

        ``ended``: the certificate was valid until yesterday; ``also``: more common names.
        """
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, each) for each in (name, *also) if each])
        certificate = self._signed(subject, key.public_key(), alternatives=alternatives,
                                   until=-DAY if ended else DAY)
        path = self.directory / (file or f"{name}.pem")
        path.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
                         + certificate.public_bytes(Encoding.PEM))
        return path

    def server(self, file="server.pem"):
        return self.issue("localhost", "127.0.0.1", "localhost", file=file)

    def _signed(self, subject, key, *, authority=False, alternatives=(), until=DAY):
        now = datetime.now(UTC)  # noqa: TID251 - what OpenSSL compares with
        builder = (x509.CertificateBuilder().subject_name(subject).issuer_name(self._name).public_key(key)
                   .serial_number(x509.random_serial_number()).not_valid_before(now - 2 * DAY).not_valid_after(now + until)
                   .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True))
        if alternatives:
            builder = builder.add_extension(x509.SubjectAlternativeName([_alternative(a) for a in alternatives]), critical=False)
        return builder.sign(self._key, hashes.SHA256())


def _alternative(text):
    if "@" in text:
        return x509.RFC822Name(text)
    try:
        return x509.IPAddress(ip_address(text))
    except ValueError:
        return x509.DNSName(text)
