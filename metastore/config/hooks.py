"""Hive's keys that name Java classes, and the fate of each class: done here, or refused with what to use instead.

Rule: no class is ignored: a listener that is not told, or a filter that does not filter, is missed too late. An
operator may list classes that may be missing.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from metastore.config import values
from metastore.config.keys import inert, key
from metastore.errors import InvalidInputError

MISSING = "metastore.classes.may.be.missing"
_LOG = (
    "what it is told of is in the notification log, which any program can follow (docs/how-to/follow-what-happens.md)"
)
_RIGHTS = (
    "calls are not authorized one by one here; let logins (docs/how-to/who-is-it.md) say who comes in, and the rights "
    "on files who reads"
)
_HIVES = ("org.apache.hadoop.hive.", "org.apache.hive.")
_DONE = frozenset(
    (
        "DbNotificationListener",
        "CatalogEventListener",
        "HMSMetricsListener",
        "AcidEventListener",
        "TransactionalValidationListener",
        "DefaultMetaStoreFilterHookImpl",
        "ObjectStore",
        "CachedStore",
        "HiveAlterHandler",
        "HiveMetaStoreFsImpl",
        "PartitionExpressionForMetastore",
        "DefaultPartitionExpressionProxy",
        "MsckPartitionExpressionProxy",
    )
)
"""Hive's own classes, without their package, whose work this service does, and our own name for a part of it."""
_INSTEAD: Mapping[str, str] = {
    "ranger": _RIGHTS,
    "sentry": _RIGHTS,
    "authoriz": _RIGHTS,
    "atlas": _LOG,
    "kafka": _LOG,
    "sns": _LOG,
    "sqs": _LOG,
    "glue": _LOG,
    "datahub": _LOG,
    "openlineage": _LOG,
    "notificationlistener": _LOG,
}
"""What to use instead of a class whose name has this word."""
_BY_KEY: Mapping[str, str] = {
    "hive.metastore.pre.event.listeners": _RIGHTS,
    "hive.metastore.filter.hook": _RIGHTS,
    "hive.metastore.event.listeners": _LOG,
    "hive.metastore.transactional.event.listeners": _LOG,
}
"""The same for other classes of a key."""
_CLASSES = (
    "Java classes: Hive's own are done here; others stop the start unless metastore.classes.may.be.missing has them."
)


@dataclass(frozen=True)
class HookSettings:
    """Java classes that Hive's server would run."""

    pre_listeners: tuple[str, ...] = inert(values.WORDS, "hive.metastore.pre.event.listeners", "", _CLASSES)
    end_listeners: tuple[str, ...] = inert(values.WORDS, "hive.metastore.end.function.listeners", "", _CLASSES)
    init_hooks: tuple[str, ...] = inert(values.WORDS, "hive.metastore.init.hooks", "", _CLASSES)
    filter_hook: tuple[str, ...] = inert(
        values.WORDS,
        "hive.metastore.filter.hook",
        "org.apache.hadoop.hive.metastore.DefaultMetaStoreFilterHookImpl",
        _CLASSES,
    )
    raw_store: tuple[str, ...] = inert(
        values.WORDS, "hive.metastore.rawstore.impl", "org.apache.hadoop.hive.metastore.ObjectStore", _CLASSES
    )
    alter_handler: tuple[str, ...] = inert(
        values.WORDS,
        "hive.metastore.alter.handler",
        "org.apache.hadoop.hive.metastore.HiveAlterHandler",
        _CLASSES,
        "hive.metastore.alter.impl",
    )
    file_handler: tuple[str, ...] = inert(
        values.WORDS,
        "hive.metastore.fs.handler.class",
        "org.apache.hadoop.hive.metastore.HiveMetaStoreFsImpl",
        _CLASSES,
    )
    expression_proxy: tuple[str, ...] = inert(
        values.WORDS,
        "hive.metastore.expression.proxy",
        "org.apache.hadoop.hive.ql.optimizer.ppr.PartitionExpressionForMetastore",
        _CLASSES,
    )
    may_be_missing: tuple[str, ...] = key(
        values.WORDS,
        MISSING,
        "",
        "Java classes that the keys of listeners and hooks name and that nobody needs here, by their full names. "
        "Hive: no such key.",
    )


def require_known(named: Iterable[tuple[str, str, tuple[str, ...]]], missing: tuple[str, ...]) -> None:
    """Raise InvalidInputError for a class that has no replacement here. ``named``: keys, their sources and classes."""
    for name, source, classes in named:
        for each in classes:
            if each in missing or (each.startswith(_HIVES) and each.rpartition(".")[2] in _DONE) or each in _DONE:
                continue
            told = next((text for word, text in _INSTEAD.items() if word in each.lower()), _BY_KEY.get(name, ""))
            raise InvalidInputError(
                f"{name} = {each} ({source}) is a Java class, which this service does not run"
                f"{f': {told}' if told else ''}. To start without it, list it in {MISSING}."
            )
