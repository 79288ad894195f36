"""Structured logs on stderr: one event with fields a line; JSON, or coloured text on a terminal.

Rules. No secrets: URLs lose their passwords, and fields whose names speak of secrets lose their values, here, so that
no caller has to remember it. People's form has an escape for each character that a terminal acts on. A log never stops
what it tells of: writing to it does not raise, whatever happened to its reader or its disk, and does not wait for a
reader who has stopped reading; lines that were lost are counted, and the count is written when lines can be written
again.
"""

import io
import logging
import os
import select
import sys
import threading
from collections.abc import MutableMapping
from typing import Any, TextIO

import structlog

from metastore.redaction import MASK, is_secret, printable, printable_lines, redacted

_PATIENCE_MS = 200
"""How long a line waits for room in a pipe; after a lost line, the next does not wait."""
_PIECE = select.PIPE_BUF
"""What a pipe takes at once when poll() says that it takes anything."""


def get_logger(name: str) -> Any:
    """Return a logger whose events carry the module they come from."""
    return structlog.get_logger(module=name)


def configure(level: str = "info", form: str = "auto") -> None:
    """Set up logging for the process. ``form``: json, console, or auto (console on a terminal)."""
    json = form == "json" or (form == "auto" and not (sys.stderr and sys.stderr.isatty()))
    lines = Lines(sys.stderr)
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info if json else _keep,
            # Plain tracebacks: the pretty tracebacks print local variables, and with them whatever a client sent.
            masked,
            _keep if json else _escaped,
            structlog.processors.JSONRenderer()
            if json
            else structlog.dev.ConsoleRenderer(exception_formatter=_traceback),
        ],
        wrapper_class=_never_raising(logging.getLevelNamesMapping()[level.upper()], lines),
        logger_factory=structlog.WriteLoggerFactory(lines),  # type: ignore[arg-type]
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(lines)
    handler.setFormatter(LibraryFormatter("%(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(handlers=[handler], level=logging.WARNING)


class LibraryFormatter(logging.Formatter):
    """The form of what libraries log, without characters that a terminal acts on."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the lines of a record."""
        return printable_lines(super().format(record))


class Lines:
    """A text stream whose lines are written whole, or counted as lost; nothing here raises or waits for long."""

    def __init__(self, stream: TextIO | None) -> None:
        """``stream``: None where the process was started without it."""
        self._stream, self.lost, self._cut = stream, 0, ""
        self._lock = threading.Lock()
        try:
            self._fd = stream.fileno() if stream else -1
        except (OSError, ValueError):  # not a file: a test's
            self._fd = -1
        self._poll = select.poll()
        self._poll.register(max(self._fd, 0), select.POLLOUT)

    def write(self, text: str) -> int:
        """Write one line, or several."""
        with self._lock:
            line = f'{{"event": "log_lines_lost", "level": "warning", "lines": {self.lost}}}\n'
            if self.lost and self._put(self._cut + line):
                self.lost, self._cut = 0, ""
            if not self._put(text):
                self.lost += 1
        return len(text)

    def flush(self) -> None:
        """Nothing is kept back."""

    def _put(self, text: str) -> bool:
        try:
            if self._fd < 0:
                return self._stream is not None and bool(self._stream.write(text))
            data = text.encode("utf-8", "backslashreplace")
            patience = 0 if self.lost else _PATIENCE_MS
            while data:
                if not self._poll.poll(patience):
                    return False
                data = data[os.write(self._fd, data[:_PIECE]) :]
                self._cut = "\n" if data else ""
        except (OSError, ValueError):  # the reader is gone, the disk is full, the stream is closed
            return False
        return True


def _never_raising(level: int, lines: Lines) -> Any:
    """Return the class of loggers from a level on. An event that cannot be written out is counted as a lost line."""

    class Logger(structlog.make_filtering_bound_logger(level)):  # type: ignore[misc]
        def _proxy_to_logger(self, method_name: str, event: str | None = None, *args: Any, **fields: Any) -> Any:
            try:
                return super()._proxy_to_logger(method_name, event, *args, **fields)
            except Exception:  # noqa: BLE001 - a value that cannot be shown must not fail what it was logged for
                lines.lost += 1
                return None

    return Logger


def masked(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Hide what is secret (`metastore.redaction`)."""
    for name, value in event.items():
        if is_secret(name):
            event[name] = MASK
        elif isinstance(value, str):
            event[name] = redacted(value)
    return event


def _escaped(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Escape what a terminal acts on in texts; what is inside of other values is shown by ``repr``, which does it."""
    for name, value in event.items():
        if isinstance(value, str):
            event[name] = printable(value)
    return event


def _traceback(out: TextIO, error: Any) -> None:
    text = io.StringIO()
    structlog.dev.plain_traceback(text, error)
    out.write(printable_lines(text.getvalue()))


def _keep(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    return event
