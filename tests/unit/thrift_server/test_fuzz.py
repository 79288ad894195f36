"""Whatever bytes arrive, the server goes on serving others."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from metastore.thrift_server.handlers.fb303 import Fb303Handlers
from tests.support.thrift_server import Peer, examples, message, serving
from tests.unit.thrift_server.test_server import ALIVE, GET_STATUS, Handlers, Stats

MESSAGES = {
    protocol: [example["data"] for example in examples() if example["protocol"] == protocol]
    for protocol in ("binary", "compact")
}
STATUS = {"binary": GET_STATUS, "compact": b"\x82\x21\x01\x09getStatus\0"}


@pytest.fixture(scope="module", params=["binary", "compact", "framed"])
def server(request):
    handlers = Handlers()
    handlers.leave.set()
    options = {"compact": {"compact_protocol": True}, "framed": {"framed": True}}.get(request.param, {})
    with serving(handlers, Fb303Handlers(Stats(), 1), **options) as running:
        running.compact, running.framed = request.param == "compact", request.param == "framed"
        with Peer(running.address, compact=running.compact, framed=running.framed) as other:
            running.other = other
            yield running


@st.composite
def mutated(draw, messages):
    """Draw a real message with some bytes changed, cut out, or repeated."""
    data = bytearray(draw(st.sampled_from(messages)))
    for _ in range(draw(st.integers(1, 6))):
        at = draw(st.integers(0, len(data)))
        kind = draw(st.sampled_from(["change", "length", "cut", "repeat", "insert"]))
        if kind == "change" and at < len(data):
            data[at] = draw(st.integers(0, 255))
        elif kind == "length":
            data[at : at + 4] = draw(st.sampled_from([0, 1, 255, 1 << 16, 1 << 27, (1 << 31) - 1, 1 << 31])).to_bytes(4)
        elif kind == "cut":
            del data[at : at + draw(st.integers(1, 40))]
        elif kind == "repeat":
            data[at:at] = data[max(0, at - 20) : at]
        else:
            data[at:at] = draw(st.binary(max_size=10))
    return bytes(data)


def survives(server, data):
    """Send the bytes, then see that another connection is served, and a new one too."""
    status = STATUS["compact" if server.compact else "binary"]
    with Peer(server.address, compact=server.compact, framed=server.framed) as peer:
        try:
            peer.send(data)
            peer.sock.settimeout(0.002)
            while peer.sock.recv(1 << 16):
                pass
        except OSError:
            pass
    assert server.other.call(status)[0] == 2
    with Peer(server.address, compact=server.compact, framed=server.framed) as fresh:
        assert fresh.call(status)[0] == 2


FUZZ = settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], deadline=None)


@FUZZ
@given(data=st.data())
def test_random_bytes(server, data):
    survives(server, data.draw(st.binary(max_size=500)))


@FUZZ
@given(data=st.data())
def test_mutated_messages(server, data):
    messages = MESSAGES["compact" if server.compact else "binary"]
    chosen = data.draw(mutated(messages))
    survives(server, len(chosen).to_bytes(4) + chosen if server.framed else chosen)


@FUZZ
@given(body=st.binary(max_size=200), method=st.sampled_from(["create_table", "unlock", "get_table", "no_such_method"]))
def test_random_arguments_of_a_real_method(server, body, method):
    compact = b"\x82\x21\x01" + bytes((len(method),)) + method.encode() + body
    data = compact if server.compact else message(method, body)
    survives(server, len(data).to_bytes(4) + data if server.framed else data)


def test_the_server_was_alive_all_the_time(server):
    assert server.other.call(STATUS["compact" if server.compact else "binary"])[2] in (ALIVE, b"\x05\0\x04\0")
