"""Structured logs on stderr: one event with fields a line; JSON, or coloured text on a terminal.

Rule: no secrets. URLs lose their passwords, and fields whose names speak of secrets lose their values, here, so that no
caller has to remember it.
"""

import logging
import re
import sys
from collections.abc import MutableMapping
from typing import Any

import structlog

_PASSWORD_IN_URL = re.compile(r"(://[^:/@\s]*:)[^@\s]*(?=@)|([?&]password=)[^&\s]+", re.IGNORECASE)
_SECRET_FIELD = re.compile(r"password|secret|token|credential", re.IGNORECASE)


def get_logger(name: str) -> Any:
    """A logger whose events carry the module they come from."""
    return structlog.get_logger(module=name)


def configure(level: str = "info", form: str = "auto") -> None:
    """Set up logging for the process. ``form``: json, console, or auto (console on a terminal)."""
    json = form == "json" or (form == "auto" and not sys.stderr.isatty())
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars, structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info if json else _keep,
            # Plain tracebacks: the pretty ones print local variables, and with them whatever a client sent.
            masked, structlog.processors.JSONRenderer() if json else structlog.dev.ConsoleRenderer(
                exception_formatter=structlog.dev.plain_traceback)],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelNamesMapping()[level.upper()]),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr), cache_logger_on_first_use=False)
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")


def masked(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Hide passwords in URLs and the values of fields that are secret by name."""
    for name, value in event.items():
        if _SECRET_FIELD.search(name):
            event[name] = "********"
        elif isinstance(value, str) and "://" in value:
            event[name] = _PASSWORD_IN_URL.sub(r"\1\2********", value)
    return event


def _keep(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    return event
