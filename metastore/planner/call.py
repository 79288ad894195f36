"""A call: its body, its caller, and the kinds of answers."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from metastore.client import DomainClient
from metastore.client.lock_manager import Stop
from metastore.files import Files
from metastore.planner.body import Body
from metastore.planner.metastores import ClientSettings

Answer: TypeAlias = dict[str, Any]


@dataclass(frozen=True)
class Call:
    """A call. ``client``: of this call alone. ``settings``: the metastore's settings for clients.

    ``user``: the user in the caller's certificate; None without one. ``gone``: a wait that ends when the caller leaves.
    """

    body: Body
    client: DomainClient
    settings: ClientSettings
    files: Files
    user: str | None
    gone: Stop


class Method(NamedTuple):
    """The function that answers a call."""

    answer: Callable[[Call], Answer]
    is_work: bool = False
    """Whether it uses a processor for long: only a few such calls run at a time."""
