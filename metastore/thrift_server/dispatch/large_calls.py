"""Large messages, which are decoded off the event loop, one after the other.

Rule: only a few large calls are in work at a time; the others wait as the bytes that they came as, which are dropped if
their connection is closed meanwhile.
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
        """Prepare a thread.

        ``put``: methods whose calls wait for a turn, in ``lanes`` if parked; others run at once.
        """
        self._messages, self._middleware, self._pool = messages, middleware, pool
        self._put, self._lanes, self._done = put, lanes, done
        self._queue: SimpleQueue[ClientConnection | None] = SimpleQueue()
        self.put = self._queue.put
        self._free = threading.Semaphore(MOST_IN_WORK)
        self.finished = self._free.release
        """A function to call when a large call has been answered."""
        self._thread = threading.Thread(target=self._work, name="large-messages", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Accept no more messages."""
        self._queue.put(None)

    def _work(self) -> None:
        while (connection := self._queue.get()) is not None:
            self._free.acquire()
            self._begin(connection)
            del connection  # Otherwise its bytes would stay until the next message comes.

    def _begin(self, connection: ClientConnection) -> None:
        """Give the call to the pool, even if it has a lane: a long call must not run on the event loop."""
        message, connection.message = connection.message, None
        if message is None or message.data is None:  # The client is gone.
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
