"""A server without loops that names a planner, both in this process: tests may look into either."""

import socket
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from typing import Any


@contextmanager
def planned_server(settings: Mapping[str, str]) -> Iterator[tuple[Any, str]]:
    """Serve an App with a planner; yield the App and the planner's address."""
    from metastore.app import App
    from metastore.config import PlannerSettings, TlsSettings
    from metastore.config.settings import SettingsSource, build
    from metastore.planner.client_pool import Metastores
    from metastore.planner.server import PlannerServer

    with closing(socket.create_server(("127.0.0.1", 0))) as held:  # its port is known before the server starts
        port = held.getsockname()[1]
    address = f"http://127.0.0.1:{port}"
    app = App(build([SettingsSource("test", {
        "hive.metastore.thrift.bind.host": "127.0.0.1", "hive.metastore.port": "0", "metastore.http.port": "0",
        "metastore.planner.uri": address, **settings})]), loops=False)
    app.start()
    metastores = Metastores(app.thrift_uri)
    planner = PlannerServer(metastores, PlannerSettings(), TlsSettings())
    planner.start("127.0.0.1", port)
    yield app, address
    planner.stop()
    metastores.close()
    app.stop()
