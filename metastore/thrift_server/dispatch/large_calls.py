"""Large messages: decoded off the event loop, one after the other.

Rule: only a few large calls are in work at a time; the others wait as the bytes that they came as, which a connection
that is closed meanwhile gives up.
"""

import threading
from collections.abc import Callable, Container, Mapping
from queue import SimpleQueue

import structlog
from thrift.Thrift import TApplicationException

from metastore.thrift_server.dispatch.call import Call
from metastore.thrift_server.dispatch.middleware import Middleware
from metastore.thrift_server.dispatch.workers import Lane, WorkerPool
from metastore.thrift_server.loop.connection import ClientConnection
from metastore.thrift_server.loop.message_reader import Messages

MOST_IN_WORK = 4
"""Large calls that are decoded and not yet answered."""
_log = structlog.get_logger("metastore.server")


class LargeCalls:
    """One thread that begins large calls in the order in which they arrived."""

    def __init__(
        self,
        messages: Messages,
        middleware: Middleware,
        pool: WorkerPool,
        put: Container[str],
        lanes: Mapping[str, Lane],
        done: Callable[[Call], None],
    ) -> None:
        """``put``: methods whose calls wait for their turn, in ``lanes`` where they come again; others run at once."""
        self._messages, self._middleware, self._pool = messages, middleware, pool
        self._put, self._lanes, self._done = put, lanes, done
        self._queue: SimpleQueue[ClientConnection | None] = SimpleQueue()
        self.put = self._queue.put
        self._free = threading.Semaphore(MOST_IN_WORK)
        self.finished = self._free.release
        """A large call has been answered."""
        self._thread = threading.Thread(target=self._work, name="large-messages", daemon=True)

    def start(self) -> None:
        """Start working."""
        self._thread.start()

    def stop(self) -> None:
        """Take nothing more."""
        self._queue.put(None)

    def _work(self) -> None:
        while (connection := self._queue.get()) is not None:
            self._free.acquire()
            self._begin(connection)
            del connection  # or what it sent would stay until the next comes

    def _begin(self, connection: ClientConnection) -> None:
        """Give its call to the pool, even if it has a lane: what takes long must not run on the event loop."""
        message, connection.message = connection.message, None
        if message is None or message.data is None:  # the client is gone
            call = Call("", (), connection)
            call.expected, call.large, call.reply = False, True, b"dropped"
            self._done(call)
            return
        try:
            call = self._middleware.admit(connection, self._messages.decoded(message.header, message.data))
        except Exception as error:  # noqa: BLE001 - the client must get an answer whatever happened
            _log.exception("large_message_given_up", **connection.who)
            call = self._middleware.refused(
                connection, message.header, TApplicationException(TApplicationException.INTERNAL_ERROR, str(error))
            )
        call.large = True
        call.lane = self._lanes.get(call.method)
        if call.method in self._put and not call.reply:
            self._pool.put(call)
            return
        if not call.reply:
            self._middleware.run(call)
        self._done(call)
