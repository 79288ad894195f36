"""A process has each of its services once, and putting them together does nothing to the world."""

import collections
import dataclasses
import importlib
import inspect
import pkgutil
import threading
from datetime import UTC, datetime

import pytest

import metastore
from metastore.app.handlers import handlers
from metastore.app.loops import compaction, server_loops
from metastore.app.services import Services
from metastore.config.settings import SettingsSource, build
from metastore.file_work import FilePool
from metastore.loops.backlog import BacklogCounter
from metastore.loops.measures import Measuring
from metastore.telemetry.calls import CallStats
from metastore.telemetry.locks import LockStats
from metastore.telemetry.tables import TableStats
from metastore.telemetry.txns import TxnStats
from metastore.thrift_server.loop.address_limits import AddressLimits
from metastore.thrift_server.upstream.endpoint import Upstream
from metastore.thrift_server.upstream.mirrored_handlers import Forwarding

STARTED = datetime(2026, 1, 1, tzinfo=UTC)


class Untouched:
    """A database that nobody may ask anything."""

    def __getattr__(self, name):
        raise AssertionError(f"the database was asked for {name}")


def kinds(value):
    """Yield the classes of all services in a set of them."""
    for field in dataclasses.fields(value):
        held = getattr(value, field.name)
        if type(held).__module__ == Services.__module__:
            yield from kinds(held)
        elif held is not None:
            yield type(held)


def service_classes():
    """Every class that is called a service, wherever it is."""
    for module in pkgutil.walk_packages(metastore.__path__, "metastore."):
        if "service" in module.name:
            for _, kind in inspect.getmembers(importlib.import_module(module.name), inspect.isclass):
                if kind.__module__ == module.name and kind.__name__.endswith("Service"):
                    yield kind


def compose(upstream):
    settings = build([SettingsSource("test", {
        "metastore.database.url": "postgresql://nowhere/x", "hive.metastore.warehouse.dir": "file:/w",
        "hive.compactor.worker.threads": "2", "hive.compactor.initiator.on": "true", "hive.compactor.cleaner.on": "true",
        **({"metastore.upstream.uris": "thrift://127.0.0.1:1"} if upstream else {})})])
    forwarding = None
    if upstream:
        forwarding = Forwarding(Upstream(settings.upstream, settings.server), CallStats(), None)
    services = Services.of(Untouched(), settings, LockStats(), TxnStats(), FilePool(1, 1.0, None), started_at=STARTED,
                           forwarding=forwarding)
    handlers(services, settings, CallStats(), AddressLimits(settings.limits), tables=TableStats())
    loops = [*server_loops(services, settings),
             *compaction(services, settings, None, BacklogCounter(services.compaction.queue),
                         Measuring(services.compaction.measuring), version="1", stopping=threading.Event())]
    return services, loops


@pytest.fixture
def built(monkeypatch):
    """How many of each were built, by class."""
    counts = collections.Counter()

    def counted(kind):
        before = kind.__init__

        def init(self, *args, **named):
            if type(self) is kind:
                counts[kind] += 1
            before(self, *args, **named)

        return init

    for kind in {*service_classes(), *(kind for upstream in (False, True) for kind in kinds(compose(upstream)[0]))}:
        if not issubclass(kind, metastore.files.Files):  # there are two: that of the loops gives up removals
            monkeypatch.setattr(kind, "__init__", counted(kind))
    return counts


@pytest.mark.parametrize("upstream", [False, True])
def test_each_service_is_built_once(built, upstream):
    services, loops = compose(upstream)
    assert {kind.__name__: count for kind, count in built.items() if count > 1} == {}
    composed = set(kinds(services))
    assert {"LockService", "TxnService", "CompactionService"} <= {kind.__name__ for kind in composed & set(built)}
    assert {"UpstreamClient", "UpstreamChanges", "UpstreamCatalog"} <= {kind.__name__ for kind in composed} or not upstream
    assert {loop.name for loop in loops} >= {"initiator", "cleaner", "worker-0", "worker-1"}


def test_every_class_called_a_service_is_part_of_the_set():
    composed = set(kinds(compose(upstream=True)[0]))
    elsewhere = {"AdoptionService"}  # of a command
    assert {kind.__name__ for kind in service_classes()} - {kind.__name__ for kind in composed} - elsewhere == set()


def test_putting_together_does_nothing_to_the_world(monkeypatch):
    """The stand-in for the database raises at any touch; so does a thread that starts."""
    def refuse(thread):
        raise AssertionError(f"{thread.name} was started")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    compose(upstream=False)
    compose(upstream=True)


def test_compaction_locks_by_the_lock_manager_of_all_calls():
    """Its settings, and its counts in the metrics, are the process's."""
    services, loops = compose(upstream=False)
    workers = [worker for loop in loops if loop.name.startswith("worker-") for worker in loop.tick.args[0]]
    assert [worker.locks for worker in workers] == [services.locks] * 2
