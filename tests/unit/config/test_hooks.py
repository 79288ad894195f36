"""Keys that name Java classes: whose work is done here, and what is said of the others."""

import pytest

from metastore.config import Settings, build
from metastore.config.settings import SettingsSource
from metastore.errors import InvalidInputError
from metastore.txns.events.service import EventService

HIVE, LOG = "org.apache.hadoop.hive.metastore.", "docs/how-to/follow-what-happens.md"
DB_LISTENER = "org.apache.hive.hcatalog.listener.DbNotificationListener"


def of(**keys):
    return build([SettingsSource("hive-site.xml", {name.replace("__", "."): text for name, text in keys.items()}, foreign=True)])


@pytest.mark.parametrize(("key", "classes", "said"), [
    ("event.listeners", "com.expediagroup.apiary.extensions.events.metastore.kafka.listener.KafkaMetaStoreEventListener", LOG),
    ("event.listeners", "com.expediagroup.apiary.extensions.events.metastore.listener.ApiarySnsListener", LOG),
    ("event.listeners", "com.expediagroup.apiary.extensions.gluesync.listener.ApiaryGlueSync", LOG),
    ("event.listeners", f"{DB_LISTENER}, org.apache.atlas.hive.hook.HiveMetastoreHook", LOG),
    ("event.listeners", "org.apache.hive.hcatalog.listener.NotificationListener", LOG),
    ("transactional.event.listeners", f"{DB_LISTENER},com.acme.Own", LOG),
    ("pre.event.listeners", "org.apache.hadoop.hive.ql.security.authorization.AuthorizationPreEventListener", "let logins"),
    ("pre.event.listeners", "org.apache.ranger.authorization.hive.authorizer.RangerHiveMetastoreAuthorizer", "let logins"),
    ("filter.hook", "org.apache.hadoop.hive.ql.security.authorization.plugin.metastore.HiveMetaStoreAuthorizer", "let logins"),
    ("filter.hook", "com.acme.DefaultMetaStoreFilterHookImpl", "let logins"),
    ("end.function.listeners", "com.acme.Own", "does not run. To start"), ("init.hooks", "com.acme.Own", "does not run. To start"),
    ("rawstore.impl", "com.acme.Store", "does not run. To start"), ("fs.handler.class", "com.acme.Trash", "does not run. To start"),
    ("alter.handler", "com.acme.Alter", "does not run. To start"), ("expression.proxy", "com.acme.Proxy", "does not run. To start"),
])
@pytest.mark.parametrize("prefix", ["hive.metastore.", "metastore."])
def test_a_class_whose_work_nobody_does_stops_the_start(prefix, key, classes, said):
    keys = {prefix + key: classes}
    with pytest.raises(InvalidInputError) as refused:
        of(**keys)
    name = classes.rpartition(",")[2].strip()
    assert str(refused.value).startswith(f"hive.metastore.{key} = {name} (hive-site.xml) is a Java class, which this service does not run")
    assert said in str(refused.value)
    assert str(refused.value).endswith("To start without it, list it in metastore.classes.may.be.missing.")
    of(**keys, **{"metastore.classes.may.be.missing": f"com.acme.Other, {name}"})


def test_a_class_that_may_be_missing_is_named_in_full():
    with pytest.raises(InvalidInputError):
        of(hive__metastore__event__listeners="com.acme.Own", metastore__classes__may__be__missing="Own,com.acme")


@pytest.mark.parametrize("key", ["event.listeners", "transactional.event.listeners"])
@pytest.mark.parametrize(("classes", "on"), [(DB_LISTENER, True), (f"{HIVE}HMSMetricsListener,{DB_LISTENER}", True), (f"{HIVE}HMSMetricsListener", False)])
def test_hives_own_listener_is_the_notification_log_whichever_key_names_it(key, classes, on):
    events = of(**{f"hive.metastore.{key}": classes, "hive.metastore.transactional.event.listeners": classes}).events
    assert EventService(None, events).wanted is on


def test_what_hive_has_by_default_is_fine():
    settings = Settings()
    of(**{row.key: row.value for row in settings.shown() if row.value and ".metastore." in row.key and "org.apache" in row.value})
    assert settings.lookup("metastore.filter.hook") == f"{HIVE}DefaultMetaStoreFilterHookImpl"
    of(hive__metastore__rawstore__impl=f"{HIVE}cache.CachedStore", hive__metastore__pre__event__listeners="")
