"""A call: its body, its caller, and the kinds of answers."""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from metastore.client import DomainClient
from metastore.files import Files
from metastore.planner.body import Body
from metastore.planner.client_pool import MetastoreSettings

Answer: TypeAlias = dict[str, Any]


@dataclass(frozen=True)
class PlannerCall:
    """A call. ``client``: of this call alone. ``settings``: the metastore's settings for clients.

    ``user``: the user in the caller's certificate; None without one. ``address``: the caller's, without the port.
    ``gone``: set when the caller leaves.
    """

    body: Body
    client: DomainClient
    settings: MetastoreSettings
    files: Files
    user: str | None
    gone: threading.Event
    address: str = ""


class Method(NamedTuple):
    """The function that answers a call."""

    answer: Callable[[PlannerCall], Answer]
    is_work: bool = False
    """True if it uses a processor for long: only a few such calls run at a time, as with large bodies."""
