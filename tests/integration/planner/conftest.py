"""A planner in this process over a real metastore, and a caller that speaks JSON."""

import http.client
import json

import pytest

from metastore.config import PlannerSettings, TlsSettings
from metastore.planner.client_pool import Metastores
from metastore.planner.server import PlannerServer

WHO = {"user": "ann", "host": "h1", "agent": "spark 4.3.0"}


class Caller:
    """Calls over one connection."""

    def __init__(self, address, context=None):
        kind = http.client.HTTPSConnection if context else http.client.HTTPConnection
        self.connection = kind(*address, timeout=60, **({"context": context} if context else {}))

    def post(self, path, content, headers=()):
        self.connection.request("POST", path, body=content, headers={"Content-Type": "application/json", **dict(headers)})
        answer = self.connection.getresponse()
        return answer.status, json.loads(answer.read())

    def __call__(self, name, **fields):
        status, answer = self.post(f"/v1/{name}", json.dumps(fields))
        assert status == 200, answer
        return answer

    def refused(self, name, **fields):
        status, answer = self.post(f"/v1/{name}", json.dumps(fields))
        assert status != 200, answer
        return status, answer["error"], answer["message"]

    def begin(self, kind="DEFAULT"):
        return self("begin", kind=kind, **WHO)["txn"]

    def planned(self, table, name="plan", **more):
        """Return the answer of a call that plans, in a snapshot of its own."""
        txn = self.begin("READ_ONLY")
        seen = self("snapshot", txn=txn, tables=[table])
        plan = self(name, table=table, txns=seen["txns"], write_ids=seen["write_ids"][table], **more)
        self("commit", txn=txn, kind="READ_ONLY")
        return plan


@pytest.fixture
def planner(server):
    found = PlannerServer(Metastores(server.thrift_uri), PlannerSettings(), TlsSettings())
    found.address = found.start("127.0.0.1", 0)
    yield found
    found.stop()
    found.metastores.close()


@pytest.fixture
def call(planner):
    caller = Caller(planner.address)
    yield caller
    caller.connection.close()
