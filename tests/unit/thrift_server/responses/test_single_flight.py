"""Equal questions share a reading that began after each of them."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Event

import pytest

from metastore.thrift_server.responses.single_flight import SingleFlight


class Question:
    """It says when somebody asks it: his flight is known before anybody else can begin one."""

    def __init__(self) -> None:
        self.asked = 0

    def __hash__(self) -> int:
        self.asked += 1
        return 1


class Readings:
    """Each waits until it is let go, and answers its number."""

    def __init__(self) -> None:
        self.begun = [Event() for _ in range(4)]
        self.may_end = [Event() for _ in range(4)]
        self.count, self.clients = 0, []

    def read(self, clients: int) -> int:
        number = self.count
        self.clients.append(clients)
        self.count += 1
        self.begun[number].set()
        assert self.may_end[number].wait(20)
        return number


def until(holds: Callable[[], bool]) -> None:
    nothing = Event()
    while not holds():
        nothing.wait(0.001)


def test_who_asks_while_a_list_is_read_shares_the_next_reading():
    flights, readings, question = SingleFlight[int](), Readings(), Question()
    with ThreadPoolExecutor(5) as clients:
        def ask() -> "Future[int]":
            before = question.asked
            answer = clients.submit(flights.answer, question, readings.read)
            until(lambda: question.asked > before)
            return answer

        first = ask()
        assert readings.begun[0].wait(20)
        others = [ask() for _ in range(3)]
        apart = clients.submit(flights.answer, "another question", lambda _: 7)
        assert apart.result(20) == 7
        assert readings.count == 1
        readings.may_end[0].set()
        assert first.result(20) == 0
        readings.may_end[1].set()
        assert [other.result(20) for other in others] == [1, 1, 1]
        readings.may_end[2].set()
        assert ask().result(20) == 2, "what has landed is nobody's answer"
    assert readings.clients == [1, 3, 1]
    assert not flights._questions, "nothing is kept of what is not asked"


def test_after_an_error_the_next_is_asked_again():
    flights = SingleFlight[int]()

    def failing(_: int) -> int:
        raise ValueError("gone")

    with pytest.raises(ValueError, match="gone"):
        flights.answer("q", failing)
    assert flights.answer("q", lambda _: 1) == 1
