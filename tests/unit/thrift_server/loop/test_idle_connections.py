"""Idle connections are cheap: 5,000 of them, in a process of their own that reports its memory."""

import resource
import socket
import subprocess
import sys

import pytest

from tests.support.thrift_server import Peer
from tests.unit.thrift_server.test_server import ALIVE, GET_STATUS

COUNT = 5000
SERVER = """
import resource, sys
from metastore.config import ServerSettings
from metastore.thrift_server.dispatch.registry import handlers_of
from metastore.thrift_server.handlers.fb303 import Fb303Handlers
from metastore.thrift_server.server import Server
from metastore.telemetry.calls import CallStats

server = Server(ServerSettings(host="127.0.0.1", port=0), handlers_of(Fb303Handlers(CallStats(), 1)))
print(server.start()[1], flush=True)
for line in sys.stdin:
    kilobytes = next(int(l.split()[1]) for l in open("/proc/self/status") if l.startswith("VmRSS"))
    print(server.connections, kilobytes, flush=True)
"""


@pytest.fixture
def process():
    server = subprocess.Popen([sys.executable, "-c", SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    yield server
    server.stdin.close()
    server.wait(60)
    server.stdout.close()


def ask(process):
    process.stdin.write("\n")
    process.stdin.flush()
    return tuple(map(int, process.stdout.readline().split()))


def test_five_thousand_idle_connections(process):
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    address = ("127.0.0.1", int(process.stdout.readline()))
    with Peer(address) as peer:
        assert peer.call(GET_STATUS)[2] == ALIVE
        connections, before = ask(process)
        assert connections == 1
        idle = [socket.create_connection(address) for _ in range(COUNT)]
        try:
            for sock in idle[::10]:
                sock.sendall(GET_STATUS)
                assert sock.recv(100).endswith(ALIVE)
            assert peer.call(GET_STATUS)[2] == ALIVE
            connections, after = ask(process)
            assert connections == COUNT + 1
            print(f"{COUNT} idle connections: {before >> 10} MB -> {after >> 10} MB, "
                  f"{(after - before) * 1024 // COUNT} bytes each")
            assert (after - before) * 1024 / COUNT < 4096
        finally:
            for sock in idle:
                sock.close()
