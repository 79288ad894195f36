"""The registry of handlers: all methods, and the way in which each is run.

Rule: a method that no handler defines answers
``TApplicationException(UNKNOWN_METHOD, "Invalid method name: '<name>'")`` and the connection stays, because clients
fall back to older methods on exactly that answer. Nothing returns an invented empty answer.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from metastore.thrift_server.dispatch.call import Call
from metastore.thrift_server.wire.interface import METHODS


@dataclass(frozen=True, slots=True)
class Handler:
    """A handler and the way in which it is run."""

    run: Callable[..., Any]
    lane: str | None = None
    immediate: bool = False
    apart: Callable[[Call], bool] | None = None
    """A function that chooses the calls of a lane that run alone on a thread."""
    shared: bool = False
    """True if the upstream gets its calls as well."""
    explain: Callable[[Sequence[Call], Sequence[Any]], None] | None = None
    """A function that adds to the `EndedError`s among the results of calls why their transactions ended."""


def handlers_of(*concepts: object) -> dict[str, Handler]:
    """Return the methods that these objects define, each public method being an RPC.

    Raises: TypeError if a public method is not in the interface, or two objects define the same method.
    """
    handlers: dict[str, Handler] = {}
    for concept in concepts:
        for name in dir(type(concept)):
            run = getattr(concept, name)
            if name.startswith("_") or not callable(run):
                continue
            if name not in METHODS:
                raise TypeError(f"{type(concept).__name__}.{name} is not a method of the interface")
            if name in handlers:
                raise TypeError(f"{name} is defined by {type(concept).__name__} and by another handler class")
            lane, at_once = getattr(run, "__coalesced__", None), getattr(run, "__immediate__", False)
            handlers[name] = Handler(
                run, lane, at_once, getattr(run, "__apart__", None), getattr(run, "__shared__", False)
            )
    return handlers
