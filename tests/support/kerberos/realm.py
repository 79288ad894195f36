"""A Kerberos realm of the tests' own (MIT's KDC), and Hive's own client in it."""

import shutil
import subprocess
import warnings
from contextlib import contextmanager
from pathlib import Path

import pyspark

_JARS = Path(pyspark.__file__).parent / "jars" / "*"
_SOURCE = Path(__file__).with_name("HiveClient.java")
_OPENED = ("java.lang", "java.net", "java.nio", "java.util", "java.util.concurrent", "sun.nio.ch")
HOST = "localhost"


def is_there():
    """Return True if this machine has a KDC and the libraries."""
    try:
        import gssapi  # noqa: F401

        with warnings.catch_warnings():  # its own sources warn when they are compiled
            warnings.simplefilter("ignore")
            import k5test  # noqa: F401
    except ImportError:
        return False
    return shutil.which("krb5kdc") is not None or Path("/usr/sbin/krb5kdc").exists()


class Realm:
    """A realm with users that have keytabs."""

    def __init__(self, work):
        import k5test

        self.work = work
        self._realm = k5test.K5Realm(create_user=False, create_host=False, portbase=_free_ports(), krb5_conf={
            "all": {"libdefaults": {"dns_lookup_kdc": "false", "rdns": "false", "dns_canonicalize_hostname": "false"}}})
        self.name = self._realm.realm
        self.environment = self._realm.env

    def keytab(self, principal):
        """Make a principal; return its name and its keytab."""
        full = f"{principal}@{self.name}"
        path = self.work / f"{principal.replace('/', '_')}.keytab"
        if not path.exists():
            self._realm.addprinc(full)
            self._realm.extract_keytab(full, str(path))
        return full, path

    @property
    def configuration(self):
        """Return the path of krb5.conf."""
        return self.environment["KRB5_CONFIG"].split(":")[0]

    def stop(self):
        self._realm.stop()


@contextmanager
def realm(work):
    """Run a KDC."""
    made = Realm(work)
    try:
        yield made
    finally:
        made.stop()


class HiveClient:
    """Hive's client in a JVM of its own, logged in from keytabs, with tokens or passwords; 2.3.10 unless ``jars`` say another."""

    def __init__(self, realm, work, uri, principal, jars=str(_JARS), home=None):
        self.uri, self.principal = uri, principal
        programs = f"{home}/bin/" if home else ""
        subprocess.run([f"{programs}javac", "-nowarn", "-proc:none", "-cp", jars, "-d", str(work), str(_SOURCE)], check=True,
                       capture_output=True)
        self._noise = (work / "noise.txt").open("w")
        opened = [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in (*_OPENED,)]
        self._java = subprocess.Popen(
            [f"{programs}java", "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", *opened,
             *([f"-Djava.security.krb5.conf={realm.configuration}"] if realm else []), "-cp", f"{work}:{jars}", "HiveClient"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._noise, text=True, cwd=work)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._java.stdin.close()
        self._java.wait(20)
        self._java.stdout.close()
        self._noise.close()

    def _say(self, *words):
        self._java.stdin.write("\t".join(words) + "\n")
        self._java.stdin.flush()
        for line in self._java.stdout:
            if line.startswith("> "):
                verdict, _, text = line[2:].rstrip("\n").partition(" ")
                if verdict == "ok":
                    return text
                raise RefusedError(text)
        raise AssertionError("the JVM has ended")

    def as_user(self, principal, keytab, *command, protection="authentication"):
        """Run a command after a login from a keytab."""
        return self._say("kerberos", self.uri, self.principal, protection, principal, str(keytab), *command)

    def with_token(self, token, *command, protection="authentication"):
        """Run a command with a delegation token."""
        return self._say("token", self.uri, self.principal, protection, token, *command)

    def with_password(self, user, password, trust, *command):
        """Run a command with a user and a password, over TLS."""
        return self._say("password", self.uri, user, password, str(trust), *command)


class RefusedError(Exception):
    """The client's exceptions, in one line."""


def _free_ports():
    import socket

    for base in range(61000, 65000, 10):
        with socket.socket() as one, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as two:
            try:
                one.bind(("127.0.0.1", base))
                two.bind(("127.0.0.1", base))
            except OSError:
                continue
            return base
    raise AssertionError("no free ports")
