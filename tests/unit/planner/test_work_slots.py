"""Turns: by address, lent while a file is waited for, given up by who has left."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from metastore.errors import LimitReachedError, UnavailableError
from metastore.planner.work_slots import Turns
from tests.support.thrift_server import until


def waiting(turns):
    return sum(map(len, turns._waiting.values()))


def test_an_address_with_many_calls_waits_for_itself():
    turns, order, gone = Turns(1), [], threading.Event()

    def work(address):
        with turns.turn(address, gone):
            order.append(address)

    with ThreadPoolExecutor(16) as pool, turns.turn("held", gone):
        for number, address in enumerate(["many"] * 8 + ["one", "two"], start=1):
            pool.submit(work, address)
            until(lambda number=number: waiting(turns) == number)
    until(lambda: len(order) == 10)
    assert order[:3] == ["many", "one", "two"]
    assert (turns._free, turns._waiting) == (1, {})


def test_who_waits_for_a_file_lends_the_turn():
    turns, gone = Turns(1), threading.Event()

    def work():
        with turns.turn("b", gone):
            return turns._free

    with ThreadPoolExecutor(1) as pool, turns.turn("a", gone):
        with turns.aside():
            assert pool.submit(work).result(60) == 0
        assert turns._free == 0
    assert turns._free == 1


def test_who_has_left_waits_for_no_turn_and_has_none_after_a_file():
    turns, gone = Turns(1), threading.Event()
    with ThreadPoolExecutor(1) as pool:
        with turns.turn("a", threading.Event()):
            late = pool.submit(lambda: turns.turn("b", gone).__enter__())
            until(lambda: waiting(turns) == 1)
            gone.set()
            with pytest.raises(UnavailableError, match="has left"):
                late.result(60)
            turns.longest_wait_s = 0
            with pytest.raises(LimitReachedError, match="busy for a minute"), turns.turn("c", threading.Event()):
                pass
        with pytest.raises(UnavailableError, match="has left"), turns.turn("a", gone), turns.aside():
            turns._free = 0  # somebody has it
    assert waiting(turns) == 0
