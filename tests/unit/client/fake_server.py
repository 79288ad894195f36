"""A metastore of a few lines, to break in any way that a test needs."""

import contextlib
import socket
import threading

from thrift.protocol.TBinaryProtocol import TBinaryProtocolAccelerated
from thrift.transport.TSocket import TSocket
from thrift.transport.TTransport import TBufferedTransport, TTransportException

from tests.support.plain_thrift import Processor


class Hangup(TTransportException):
    """Raised by a handler: the connection is closed instead of an answer."""


class FakeServer:
    """Serves a handler object on a free port; ``calls`` lists the method names that arrived, set_ugi apart."""

    def __init__(self, handler):
        self.handler = handler
        self.calls = []
        self.connections = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.uri = f"thrift://127.0.0.1:{self.listener.getsockname()[1]}"
        self.threads = [threading.Thread(target=self._accept, daemon=True)]
        self.threads[0].start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def __getattr__(self, name):
        if name == "set_ugi":
            return lambda user, groups: [user]
        if name == "shutdown":
            return lambda: self.calls.append("shutdown")

        def call(*args):
            self.calls.append(name)
            return getattr(self.handler, name)(*args)
        return call

    def hang_up(self):
        """Close every connection, as a server that restarts does."""
        for connection in self.connections:
            with contextlib.suppress(OSError, AttributeError):  # closed already
                connection.handle.shutdown(socket.SHUT_RDWR)

    def stop(self):
        """Answer nobody any more."""
        if self.listener.fileno() < 0:
            return
        self.listener.shutdown(socket.SHUT_RDWR)  # closing alone would not wake the thread that accepts
        self.listener.close()
        self.hang_up()

    def _accept(self):
        while True:
            try:
                handle, _ = self.listener.accept()
            except OSError:
                return
            transport = TSocket()
            transport.setHandle(handle)
            self.connections.append(transport)
            self.threads.append(threading.Thread(target=self._serve, args=(transport,), daemon=True))
            self.threads[-1].start()

    def _serve(self, transport):
        protocol = TBinaryProtocolAccelerated(TBufferedTransport(transport))
        processor = Processor(self)
        try:
            while True:
                processor.process(protocol, protocol)
        except (TTransportException, OSError, EOFError, AttributeError):
            transport.close()
