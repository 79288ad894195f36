"""Users of principals, by the examples of Hadoop's own documentation and tests of KerberosName."""

import pytest

from metastore.errors import AccessDeniedError, InvalidInputError
from metastore.thrift_server.auth.principals import LocalNames, with_host

RULES = """
    RULE:[1:$1@$0](.*@YAHOO\\.COM)s/@.*//
    RULE:[2:$1](johndoe)s/^.*$/guest/
    RULE:[2:$1;$2](^.*;admin$)s/;admin$//
    RULE:[2:$2](root)
    RULE:[1:$1@$0](.*@LOWER)s/@.*///L
    RULE:[1:$1@$0](b.*@MANY)s/[b@MANY]/x/g
    RULE:[1:$1@$0](c.*@SWAP)s/(c)(.*)@.*/$2$1/
    DEFAULT"""


@pytest.mark.parametrize(("principal", "user"), [
    ("omalley@YAHOO.COM", "omalley"), ("hdfs/10.0.0.1@APACHE.ORG", "hdfs"), ("johndoe/zoo@FOO.COM", "guest"),
    ("joe/admin@FOO.COM", "joe"), ("joe/root@FOO.COM", "root"), ("omalley@APACHE.ORG", "omalley"),
    ("Ann@LOWER", "ann"), ("bob@MANY", "xoxxxxxx"), ("cab@SWAP", "abc")])
def test_rules(principal, user):
    assert LocalNames(RULES, "APACHE.ORG").of(principal) == user


@pytest.mark.parametrize("principal", ["foo@ACME.COM", "joe/elsewhere@FOO.COM", "a/b/c@APACHE.ORG", "", "@APACHE.ORG", "x"])
def test_a_principal_without_a_rule_is_nobody(principal):
    with pytest.raises(AccessDeniedError):
        LocalNames(RULES, "APACHE.ORG").of(principal)


def test_a_rule_must_make_a_simple_name():
    with pytest.raises(AccessDeniedError, match="no user.s name"):
        LocalNames("RULE:[1:$1@$0]", "R").of("ann@R")


@pytest.mark.parametrize("text", ["RULE:[1:$1](", "what", "RULE:[1:$1](*)", "DEFAULT xx"])
def test_a_wrong_rule_stops_the_start(text):
    with pytest.raises(InvalidInputError, match="hadoop.security.auth_to_local"):
        LocalNames(text, "R")


def test_the_machines_name():
    assert with_host("hive/_HOST@R", "Node.Example") == "hive/node.example@R"
    assert with_host("hive@R", "n") == "hive@R"
