"""Which planner a server names to its clients."""

import dataclasses

import pytest

from metastore.app import App
from metastore.app.planner import PlannerBeside
from metastore.client import MetastoreClient
from metastore.config import PlannerSettings
from metastore.errors import InvalidInputError


def named(server, settings=PlannerSettings(), host="127.0.0.1"):  # noqa: B008 - frozen
    app = App(dataclasses.replace(server.settings, planner=settings, server=dataclasses.replace(server.settings.server, host=host)),
              loops=False, planner=[])
    app.start()
    try:
        with MetastoreClient(app.thrift_uri) as client:
            uri = client.get_config_value("metastore.planner.uri", "")
        assert app.addresses().get("planner", "") == uri
        return uri
    finally:
        app.stop()


def test_the_one_beside_it_by_the_host_that_it_listens_on(server):
    assert named(server).rpartition(":")[0] == "http://127.0.0.1"


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_a_server_on_all_addresses_leaves_the_host_to_the_client(server, host):
    open_to_all = dataclasses.replace(server.settings, tls=dataclasses.replace(server.settings.tls, allow_insecure=True),
                                      server=dataclasses.replace(server.settings.server, host=host))
    beside = PlannerBeside(open_to_all, [])
    uri = beside.listen()
    beside.stop()
    assert uri.rpartition(":")[0] == {"0.0.0.0": "http://0.0.0.0", "::": "http://[::]"}[host]


def test_another_one_that_is_set(server):
    assert named(server, PlannerSettings(uri="https://planner.example:9085")) == "https://planner.example:9085"


def test_none_where_none_is_wanted_or_can_be(server, monkeypatch):
    assert named(server, PlannerSettings(enabled=False)) == ""
    monkeypatch.setattr(PlannerBeside, "is_installed", lambda: False)
    assert named(server) == ""


def test_a_port_that_is_taken_is_named(server):
    taken = int(server.http_uri.rpartition(":")[2])
    with pytest.raises(InvalidInputError, match=f"The planner port {taken} on 127.0.0.1 cannot be used"):
        named(server, PlannerSettings(port=taken))
