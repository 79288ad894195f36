r"""pgbench scripts with the SQL of our server, derived again in each run: they cannot go stale.

A server of ours runs behind a ``Wiretap``. Two clients, one after the other, run a scenario. A value that differs
between two rounds of a client, or between the clients, is an id, and the script gets a variable in its place:

- an id that an earlier answer of PostgreSQL has in a column: pgbench reads it from there (``\aset``);
- an id that the server took out of a longer answer or made itself: a counter of each pgbench client;
- a part of a client's own names: pgbench's ``client_id``.

Everything else is sent as our server sends it, except that every transaction waits for the disk (``synchronous_commit``
stays on, in functions too): each call is one durable PostgreSQL transaction. A script that leaves open transactions or
locks behind does not do the work of the calls, and is refused.
"""

import re
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from typing import NamedTuple, Self
from urllib.parse import urlsplit

from benchmarks import pgbench
from benchmarks.contestants import Contestant
from benchmarks.load import WHOLE, Scenario, Tally
from benchmarks.peers import database, end, run_sql, start_ours
from benchmarks.scenarios import table_of
from benchmarks.wiretap import Exchange, Wiretap
from metastore.thrift_gen.hive_metastore import ttypes

WARM_ROUNDS = 3
"""The rounds before the compared ones: they prepare every statement, and reserve every block of ids."""
FAR = 1_000_000_000
"""The distance between the counters of two pgbench clients."""

_NUMBER = re.compile(r"\d+")
_VALUE = re.compile(r"\{\d+\}|\d+")  # an array with a single value counts as a value
_INSTANT = re.compile(r"'\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d[^']*'")
_PREPARE = re.compile(r"PREPARE (\w+)\b", re.IGNORECASE)
_EXECUTE = re.compile(r"EXECUTE (\w+)", re.IGNORECASE)
_RELAXED = re.compile(r"SET LOCAL synchronous_commit\b", re.IGNORECASE)
_RELAXING = re.compile(r"(set_config\('synchronous_commit', *)'off'", re.IGNORECASE)
_PARTS = re.compile(r"'(?:[^']|'')*'|\"[^\"]*\"|(\$\w*\$).*?\1|--[^\n]*|;|[^'\"$;-]+|.", re.DOTALL)

Triple = tuple[str, str, str]
"""A value in two rounds of one client and in one round of another."""


class UnlikeError(Exception):
    """No script is equal: rounds of a scenario had different statements, or left something behind."""


class Recorded(NamedTuple):
    """A client's messages: those before its first full round less a usual round, and those of its last two rounds."""

    before: list[Exchange]
    rounds: tuple[list[Exchange], list[Exchange]]


class EqualSql:
    """Our server behind a wiretap, in a database that pgbench then works on; a context manager."""

    def __init__(self, work: Path, server_url: str) -> None:
        self.work, self.url = work, database(server_url, "bench_equal")
        self._running = ExitStack()
        self._prepared: dict[str, str] = {}
        self._runs = 0

    def __enter__(self) -> Self:
        url = urlsplit(self.url)
        self._tap = self._running.enter_context(Wiretap(url.hostname or "", url.port or 0))
        tapped = url._replace(netloc=url.netloc.replace(f":{url.port}", f":{self._tap.port}")).geturl()
        server, ready = start_ours(self.work, "--database-url", tapped, "--no-loops")
        self._running.callback(end, server)
        self.server = Contestant(("127.0.0.1", urlsplit(ready["thrift"]).port or 0), server.pid, self.url)
        self._make_functions_durable()
        with self.server.client() as client:  # so that ids of different kinds are different numbers
            client.seed_txn_id(ttypes.SeedTxnIdRequest(5_000_001))
        return self

    def __exit__(self, *_: object) -> None:
        self._running.close()

    def script(self, scenario: Scenario) -> Path:
        """Return pgbench's script for a scenario. Raises: UnlikeError."""
        for last in (False, False, True):  # a call may also do work that is due just then
            try:
                script = Script(self._record(scenario, 0), self._record(scenario, 1))
                break
            except UnlikeError:
                if last:
                    raise
        used = set(_EXECUTE.findall(script.text))
        introduction = "".join(f"{text};\n" for name, text in self._prepared.items() if name in used)
        place = self.work / "script.sql"
        place.write_text("\\if :fresh\n" + _RELAXING.sub(r"\1'on'", introduction) + "\\endif\n" + script.text)
        return place

    def run(self, script: Path, clients: int, seconds: float) -> float:
        """Return the runs of the script per second. Raises: UnlikeError."""
        self._runs += 1  # counters begin behind those of earlier runs
        before = self._held()
        run_sql(self.url, "UPDATE txn_counter SET reserved_until = next_txn_id + 100000000")  # a script reserves none
        rate = pgbench.run(
            self.url,
            script,
            clients,
            seconds,
            "-M",
            "simple",
            "-D",
            "fresh=1",
            "-D",
            f"n={self._runs * FAR // 1000}",
            "--max-tries=100",
            options=self._tap.options,
        )
        if self._held() > before + 2 * clients:  # the last round of each client may have been cut short
            raise UnlikeError("the script leaves transactions or locks behind")
        return rate

    def _held(self) -> int:
        [(count,)] = run_sql(
            self.url,
            "SELECT (SELECT count(*) FROM txns WHERE state = 'open') + (SELECT count(DISTINCT ext_id) FROM locks)",
        )
        return int(count)

    def _make_functions_durable(self) -> None:
        for (definition,) in run_sql(
            self.url,
            "SELECT pg_get_functiondef(oid) FROM pg_proc WHERE pronamespace = "
            "'public'::regnamespace AND prosrc LIKE '%synchronous_commit%'",
        ):
            run_sql(self.url, _RELAXING.sub(r"\1'on'", definition))

    def _record(self, scenario: Scenario, index: int) -> Recorded:
        """Run rounds alone, with the scenario's own generator."""
        tally = Tally()
        steps = scenario(index, tally)
        calls: list[tuple[int, list[Exchange]]] = []  # the round of each message, and the message's exchanges
        with socket.create_connection(self.server.address) as sock:
            message = next(steps)
            while tally.units < WARM_ROUNDS + 2:
                unit = tally.units
                sock.sendall(message)
                message = steps.send(_reply(sock, tally))
                calls.append((unit, [self._stripped(exchange) for exchange in self._tap.taken()]))
        rounds = [[exchanges for unit, exchanges in calls if unit == wanted] for wanted in range(WARM_ROUNDS + 2)]
        before = rounds[0][: len(rounds[0]) - len(rounds[1])]
        return Recorded(list(chain(*before)), (list(chain(*rounds[-2])), list(chain(*rounds[-1]))))

    def _stripped(self, exchange: Exchange) -> Exchange:
        """Return the exchange without preparing statements (which is noted) and without asynchronous commits."""
        kept = []
        for statement in statements(exchange.sql):
            if prepares := _PREPARE.match(statement):
                self._prepared[prepares[1]] = statement
            elif not _RELAXED.match(statement):
                kept.append(statement)
        return Exchange("; ".join(kept), exchange.columns, exchange.rows)


def _reply(sock: socket.socket, tally: Tally) -> bytes:
    data = b""
    while True:
        data += sock.recv(1 << 18)
        if data[-1:] == b"\0" and (len(data) <= WHOLE or tally.whole(data)):
            return data


def statements(sql: str) -> Iterator[str]:
    """Yield the statements of a message; semicolons within texts and names do not count."""
    statement = ""
    for part in _PARTS.finditer(sql + ";"):
        if part[0] != ";":
            statement += part[0]
        elif statement.strip():
            yield statement.strip()
            statement = ""


class Script:
    """A script that repeats the work of two clients, in ``text``. Raises: UnlikeError."""

    def __init__(self, first: Recorded, second: Recorded) -> None:
        self.tables = table_of(0), table_of(1)
        self.known: dict[Triple, str] = {}
        self.counters: dict[Triple, str] = {}
        self.constants: dict[Triple, str] = {}
        self.answers = 0
        before = self._messages(first.before, first.before, second.before)
        messages = self._messages(*first.rounds, second.rounds[0])
        needed = set(re.findall(r":(m\d+_)", "".join(message for _, message in before + messages)))
        begin, again = (
            [f"{message} \\aset {name}" if name in needed else f"{message};" for name, message in part]
            for part in (before, messages)
        )
        own = [f"\\set {name} {value} + :client_id" for (value, _, _), name in self.constants.items()]
        made = [
            f"\\set {name} {FAR} * (:client_id + 1) + {int(later) - int(value)} * :n + {value}"
            for (value, later, _), name in self.counters.items()
        ]
        self.text = "\n".join(
            ["\\if :fresh", *own, *begin, "\\set fresh 0", "\\endif", "\\set n :n + 1", *made, *again, ""]
        )

    def _messages(self, *rounds: list[Exchange]) -> list[tuple[str, str]]:
        """Return the messages, each with the prefix of the variables that its answer sets."""
        if len({len(messages) for messages in rounds}) != 1:
            raise UnlikeError(f"rounds of {' and '.join(str(len(messages)) for messages in rounds)} messages")
        return [self._message(*same) for same in zip(*rounds, strict=True)]

    def _message(self, *same: Exchange) -> tuple[str, str]:
        """Return one message with variables in place of ids, and register the values of its answer."""
        texts = [
            exchange.sql.replace(table, self.tables[0])
            for exchange, table in zip(same, (self.tables[0], *self.tables), strict=True)
        ]
        instants = _INSTANT.findall(texts[0])
        for index, text in enumerate(texts):  # the first round's variables are enough
            left = iter(instants)
            texts[index] = _INSTANT.sub(lambda match, left=left: next(left, match[0]), text)
        if len({_NUMBER.sub("0", text) for text in texts}) != 1:
            raise UnlikeError(f"rounds with different statements: {' <> '.join(texts)}")
        values = zip(*(_VALUE.findall(text) for text in texts), strict=True)
        message = _VALUE.sub(lambda _: self._value(next(values)), texts[0])
        message = message.replace(self.tables[0], re.sub(r"\d+$", ":client_id", self.tables[0]))
        prefix = f"m{self.answers}_"
        self.answers += 1
        for triple, column in _told(*same):
            self.known.setdefault(triple, prefix + column)
        return prefix, " \\;\n".join(statements(message))

    def _value(self, triple: Triple) -> str:
        """Return the number that all rounds share, or a variable."""
        if len(set(triple)) == 1:
            return triple[0]
        if triple in self.known:
            return f":{self.known[triple]}"
        if triple[0].startswith("{"):
            a, b, c = (literal[1:-1] for literal in triple)
            return "{" + self._value((a, b, c)) + "}"
        if triple[0] != triple[1]:
            return ":" + self.counters.setdefault(triple, f"made{len(self.counters)}")
        return ":" + self.constants.setdefault(triple, f"own{len(self.constants)}")


def _told(*same: Exchange) -> Iterator[tuple[Triple, str]]:
    """Yield the numbers that differ in the last row of an answer: pgbench can read those."""
    columns = same[0].columns
    if all(answer.rows for answer in same) and all(re.fullmatch(r"[A-Za-z_]\w*", column) for column in columns):
        for column, *values in zip(columns, *(answer.rows[-1] for answer in same), strict=True):
            differ = columns.count(column) == 1 and len(set(values)) > 1
            if differ and all(value and _VALUE.fullmatch(value) for value in values):
                a, b, c = (str(value) for value in values)
                yield (a, b, c), column
