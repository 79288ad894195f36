"""One call: what was sent, by whom, and what it is answered with."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from metastore.client import DomainClient
from metastore.client.lock_manager import Stop
from metastore.files import Files
from metastore.planner.body import Body
from metastore.planner.metastores import Told

Answer: TypeAlias = dict[str, Any]


@dataclass(frozen=True)
class Call:
    """``client``: for this call alone. ``user``: who the caller has proven to be; None: nobody has proven anything.

    ``gone``: a wait that ends when the caller goes away.
    """

    body: Body
    client: DomainClient
    told: Told
    files: Files
    user: str | None
    gone: Stop


class Method(NamedTuple):
    """How a call is answered."""

    answer: Callable[[Call], Answer]
    is_work: bool = False
    """Whether it takes a processor for long: of those only a few run at a time."""
