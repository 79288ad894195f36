from dataclasses import replace
from types import SimpleNamespace

import pytest

from metastore.config import ServerSettings, Settings
from metastore.errors import ConfigValueSecurityError, MetaError
from metastore.thrift_server.auth.identity import NOBODY, Identity
from metastore.thrift_server.dispatch.call import Call
from metastore.thrift_server.handlers.session import SessionHandlers


def session(**server):
    return SessionHandlers(Settings(server=ServerSettings(**server), foreign={"hive.key1": "value1"}))


def call(identity=NOBODY):
    return Call("m", (), SimpleNamespace(peer="p", identity=identity, user=identity.user, groups=(), metaconf=None, closed=False))


def test_set_ugi_names_the_connections_user():
    one = call()
    assert session().set_ugi(one, "bob", ["g1", "g2"]) == ["g1", "g2"]
    assert (one.connection.user, one.connection.groups) == ("bob", ("g1", "g2"))
    assert session().set_ugi(one, "anonymous", []) == []
    assert session().set_ugi(one, "ann", None) == []


def test_set_ugi_does_not_change_who_has_proven_to_be_there():
    one = call(Identity("ann"))
    assert session().set_ugi(one, "bob", ["admins"]) == ["admins"]
    assert (one.connection.user, one.connection.groups) == ("ann", ())


def test_set_ugi_without_setugi_mode_binds_nothing():
    one = call()
    assert session(execute_setugi=False).set_ugi(one, "bob", ["g1"]) == ["g1", "bob"]
    assert one.connection.user is None


def test_what_stays_with_a_connection_is_short():
    one = call()
    for long in (lambda: session().set_ugi(one, "u" * 9000, []), lambda: session().set_ugi(one, "bob", ["g" * 90] * 100),
                 lambda: session().setMetaConf(one, "metastore.partition.name.whitelist.pattern", "x" * 9000)):
        with pytest.raises(MetaError, match="is at most 8192 bytes long"):
            long()
    assert (one.connection.user, one.connection.groups, one.connection.metaconf) == (None, (), None)


@pytest.mark.parametrize(
    ("name", "default", "expected"),
    [
        (None, "x", "x"),
        ("hive.key1", "x", "value1"),
        ("hive.key5", "default", "default"),
        ("hive.txn.timeout", "x", "300s"),
        ("metastore.txn.timeout", "x", "300s"),
        ("hive.unset", None, ""),
    ],
)
def test_config_values(name, default, expected):
    assert session().get_config_value(call(), name, default) == expected


@pytest.mark.parametrize("name", ["javax.jdo.option.ConnectionPassword", "datanucleus.x", "", "fs.s3a.secret.key"])
def test_other_families_of_keys_are_not_told(name):
    with pytest.raises(ConfigValueSecurityError):
        session().get_config_value(call(), name, "x")


def test_secrets_inside_the_readable_families_are_not_told():
    settings = replace(Settings(), foreign={"hive.ldap.password": "s3cret"})
    with pytest.raises(ConfigValueSecurityError):
        SessionHandlers(settings).get_config_value(call(), "hive.ldap.password", "x")


def test_metaconf_belongs_to_the_connection():
    one, other, handlers = call(), call(), session()
    assert handlers.getMetaConf(one, "hive.metastore.try.direct.sql") == "true"
    handlers.setMetaConf(one, "metastore.try.direct.sql", "FALSE")
    assert handlers.getMetaConf(one, "hive.metastore.try.direct.sql") == "FALSE"
    assert handlers.getMetaConf(other, "hive.metastore.try.direct.sql") == "true"


@pytest.mark.parametrize("key", ["hive.txn.timeout", "", None])
def test_metaconf_has_six_keys(key):
    with pytest.raises(MetaError, match="Invalid configuration key"):
        session().getMetaConf(call(), key)
    with pytest.raises(MetaError, match="Invalid configuration key"):
        session().setMetaConf(call(), key, "true")


def test_metaconf_values_have_their_kind():
    with pytest.raises(MetaError, match="expected true or false"):
        session().setMetaConf(call(), "hive.metastore.try.direct.sql", "maybe")


def test_flush_cache():
    assert session().flushCache(call()) is None


@pytest.mark.parametrize(("user", "address"), [("a", None), ("a", ""), (None, "host"), ("a" * 1000, "h:1")])
def test_a_planners_caller_has_an_address(user, address):
    with pytest.raises(MetaError, match="HOST:PORT"):
        session().metastore_act_for(call(), user, address)
