"""Lanes on an event loop: what happens between two waits, who goes on when, and what an accident costs."""

import os
import select
import time
from contextlib import ExitStack

import pytest
import structlog
from greenlet import getcurrent
from thrift.protocol import fastbinary

from metastore.db import fibers
from metastore.thrift_gen.hive_metastore import ThriftHiveMetastore, ttypes
from metastore.thrift_server.dispatch.call import coalesced
from metastore.thrift_server.dispatch.workers import MOST, FiberWaits, Lane
from tests.support.thrift_server import Peer, message, serving

_BEAT = ThriftHiveMetastore.heartbeat_args(ttypes.HeartbeatRequest(txnid=1))
ARGUMENTS = _BEAT, [type(_BEAT), type(_BEAT).thrift_spec]


@pytest.fixture
def waits():
    with select.epoll() as polled:
        yield FiberWaits(polled)


@pytest.fixture
def pipes():
    """Yield a function that opens pipes; their ends are closed after the test."""
    made = []

    def pipe():
        made.append(os.pipe())
        return made[-1]

    yield pipe
    for pair in made:
        for fd in pair:
            os.close(fd)


def lane_of(run):
    done, wanted = [], []
    return Lane(run, lambda call, result: setattr(call, "reply", result), done.append, wanted.append), done, wanted


def turn(waits):
    """One round of the loop."""
    for fd, _ in waits._epoll.poll(5):
        waits.end(fd)


def test_while_one_batch_waits_others_run_and_calls_gather(waits, pipes):
    answers, asks = pipes()
    batches = []

    def run(batch):
        batches.append(batch)
        if len(batches) == 1:
            fibers.until(answers, select.POLLIN)

    lane, done, wanted = lane_of(run)
    for call in range(4):
        lane.put(call)
        lane.go(waits)
    assert batches == [[0]]
    assert done == []

    os.write(asks, b"x")
    turn(waits)
    assert done == [[0]]
    assert wanted[-1] is lane, "the calls that gathered are announced"
    lane.go(waits)
    assert batches[-1] == [1, 2, 3]


def test_a_batch_takes_no_more_than_its_most(waits):
    lane, done, wanted = lane_of(lambda _: None)
    for call in range(2 * MOST + 1):
        lane.put(call)
    while wanted:
        wanted.pop().go(waits)
    assert [len(batch) for batch in done] == [MOST, MOST, 1]


def test_a_wait_that_lasts_too_long_ends(waits, pipes):
    ended = []

    def run(_):
        with pytest.raises(TimeoutError):
            fibers.until(pipes()[0], select.POLLIN, 60)
        ended.append(True)

    lane, done, _ = lane_of(run)
    lane.put(1)
    lane.go(waits)
    waits.sweep(time.monotonic() + 59)
    assert not ended
    waits.sweep(time.monotonic() + 61)
    assert ended
    assert done == [[1]]


def test_a_batch_that_fails_for_no_foreseen_reason_costs_only_itself(waits):
    def run(batch):
        if batch == ["bad"]:
            raise RuntimeError("never foreseen")

    lane, done, _ = lane_of(run)
    with structlog.testing.capture_logs() as lines:
        lane.put("bad")
        lane.go(waits)
    lane.put("good")
    lane.go(waits)
    assert done == [["bad"], ["good"]]
    assert [line["event"] for line in lines] == ["batch_given_up"]


def test_a_thread_waits_by_itself(pipes):
    reading, writing = pipes()
    with pytest.raises(TimeoutError):
        fibers.until(reading, select.POLLIN, 0.01)
    os.write(writing, b"x")
    fibers.until(reading, select.POLLIN)


def test_batches_run_in_one_fiber_which_an_accident_does_not_end(waits):
    fibers_used = []

    def run(_):
        fibers_used.append(getcurrent())
        if len(fibers_used) == 2:
            raise ValueError("an accident")

    lane, done, _ = lane_of(run)
    for call in range(3):
        lane.put(call)
        lane.go(waits)

    assert len(set(fibers_used)) == 1
    assert done == [[0], [1], [2]]


class Looks:
    """An epoll that notes how long the loop was ready to wait."""

    def __init__(self, real):
        self.real, self.patience = real, []

    def __getattr__(self, name):
        return getattr(self.real, name)

    def poll(self, seconds):
        self.patience.append(seconds)
        return self.real.poll(seconds)


@pytest.mark.parametrize("idle", [False, True])
def test_nobody_is_waited_for_when_everybody_has_asked(idle):
    class Beats:
        @coalesced("heartbeat")
        def heartbeat(self, calls):
            return [None for _ in calls]

    beat = message("heartbeat", fastbinary.encode_binary(*ARGUMENTS))
    with serving(Beats()) as server, Peer(server.address) as client, ExitStack() as others:
        if idle:
            other = others.enter_context(Peer(server.address))
            other.call(beat)
        client.call(beat)
        server._epoll = looks = Looks(server._epoll)
        for _ in range(3):
            client.call(beat)

        assert (0 in looks.patience) is idle
