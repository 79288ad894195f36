"""Passwords that a real directory server (slapd) checks, by Hive's keys."""

import shutil
import socket
import subprocess
from pathlib import Path

import pytest

from metastore.config.identity import IdentitySettings
from metastore.errors import UnavailableError
from tests.support.thrift_server import until

SLAPD = shutil.which("slapd") or "/usr/sbin/slapd"
CONFIG = """include /etc/ldap/schema/core.schema
include /etc/ldap/schema/cosine.schema
include /etc/ldap/schema/inetorgperson.schema
modulepath /usr/lib/ldap
moduleload back_mdb
pidfile {work}/pid
database mdb
suffix "dc=example"
rootdn "cn=admin,dc=example"
rootpw admin
directory {work}/db
"""
PEOPLE = """dn: dc=example
objectClass: domain
dc: example

dn: ou=people,dc=example
objectClass: organizationalUnit
ou: people

dn: uid=ann,ou=people,dc=example
objectClass: inetOrgPerson
uid: ann
cn: Ann
sn: A
userPassword: secret

dn: uid=bob\\2C (odd)*,ou=people,dc=example
objectClass: inetOrgPerson
uid: bob, (odd)*
cn: Bob
sn: B
userPassword: secret

dn: cn=etl,dc=example
objectClass: groupOfNames
cn: etl
member: uid=ann,ou=people,dc=example
"""


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    pytest.importorskip("ldap3", reason="pip install ldap3")
    if not Path(SLAPD).exists():
        pytest.skip("there is no slapd: apt-get install slapd")
    work = tmp_path_factory.mktemp("ldap")
    (work / "db").mkdir()
    (work / "slapd.conf").write_text(CONFIG.format(work=work))
    (work / "people.ldif").write_text(PEOPLE)
    subprocess.run([SLAPD, "-T", "add", "-f", work / "slapd.conf", "-l", work / "people.ldif"], check=True, capture_output=True)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"ldap://127.0.0.1:{free.getsockname()[1]}"
    with (work / "noise").open("w") as noise:
        running = subprocess.Popen([SLAPD, "-d", "0", "-f", work / "slapd.conf", "-h", address], stdout=noise, stderr=noise)
        until(lambda: _answers(address))
        yield address
        running.terminate()
        running.wait(20)


def _answers(address):
    host, _, port = address.removeprefix("ldap://").partition(":")
    try:
        socket.create_connection((host, int(port)), 1).close()
    except OSError:
        return False
    return True


def directory(**settings):
    from metastore.thrift_server.auth.ldap import LdapDirectory

    return LdapDirectory(IdentitySettings(authentication="ldap", **settings))


BY_BASE = {"ldap_base": "ou=people,dc=example"}
BY_PATTERN = {"ldap_user_patterns": ("uid=%s,ou=nowhere,dc=example", "uid=%s,ou=people,dc=example"), "ldap_base": "dc=example"}
BY_SEARCH = {"ldap_base": "dc=example", "ldap_bind_user": "cn=admin,dc=example", "ldap_bind_password": "admin"}


@pytest.mark.parametrize("how", [BY_BASE, BY_PATTERN, BY_SEARCH], ids=["base", "pattern", "search"])
def test_who_gets_in(url, how):
    check = directory(ldap_urls=(url,), **how).check
    assert check("ann", "secret")
    assert check("bob, (odd)*", "secret")  # a name is not a pattern, and no part of a name of the directory
    assert not any(check(*login) for login in [("ann", "wrong"), ("ann", ""), ("nobody", "secret"), ("*", "secret"), ("", "secret"),
                                               ("ann,ou=people,dc=example", "secret")])


def test_filters(url):
    in_group = directory(ldap_urls=(url,), ldap_group_base="dc=example", ldap_group_filter=("admins", "etl"), **BY_BASE)
    assert in_group.check("ann", "secret")
    assert not in_group.check("bob, (odd)*", "secret")
    listed = directory(ldap_urls=(url,), ldap_user_filter=("bob",), **BY_BASE)
    assert not listed.check("ann", "secret")


def test_a_server_that_is_away(url):
    gone = "ldap://127.0.0.1:1"
    assert directory(ldap_urls=(gone, url), **BY_BASE).check("ann", "secret")
    with pytest.raises(UnavailableError, match="127.0.0.1:1"):
        directory(ldap_urls=(gone,), **BY_BASE).check("ann", "secret")
    with pytest.raises(UnavailableError, match="binddn"):
        directory(ldap_urls=(url,), **{**BY_SEARCH, "ldap_bind_password": "wrong"}).check("ann", "secret")
