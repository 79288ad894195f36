"""Quotas of open transactions and locks for each client address: open_txns and lock are refused beyond them.

Rules: the ids that an address got from this process are recorded; PostgreSQL knows which of them still exist, and is
asked only when the recorded ids reach the limit (ADR 42). Names that clients give themselves do not count. A call
counts for those behind it in its batch before it has got any id.
"""

import dataclasses
from collections.abc import Callable, Collection, Mapping
from time import monotonic
from typing import Any

from metastore.config import LimitSettings
from metastore.errors import LimitReachedError
from metastore.thrift_server.dispatch.call import Call
from metastore.thrift_server.dispatch.registry import Handler
from metastore.thrift_server.loop.address_limits import AddressLimits, Usage

_LOOK_EVERY_SECONDS = 1.0
"""The time for which an address at its limit is refused without a look."""


@dataclasses.dataclass(frozen=True)
class Quota:
    """One kind of limited ids."""

    kind: str
    what: str
    """The same name for people."""
    most: int
    setting: str
    present: Callable[[Collection[int]], Mapping[int, int]]
    """The ids that still exist, with the weight of each."""
    wanted: Callable[[Any], int]
    """The weight of a request."""
    got: Callable[[Any, Any], Mapping[int, int]]
    """The ids that a request got by its answer, with the weight of each."""


def txns_and_locks(
    settings: LimitSettings,
    most_at_once: int,
    still_open: Callable[[Collection[int]], Collection[int]],
    still_there: Callable[[Collection[int]], Mapping[int, int]],
) -> dict[str, Quota]:
    """Return the quotas by the method that takes from them. ``most_at_once``: transactions of one call."""
    return {
        "open_txns": Quota(
            "open_txns",
            "open transactions",
            settings.open_txns,
            "metastore.limit.open.txns",
            lambda ids: dict.fromkeys(still_open(ids), 1),
            lambda request: max(0, min(request.num_txns, most_at_once)),
            lambda _, answer: dict.fromkeys(answer.txn_ids, 1),
        ),
        "lock": Quota(
            "locks",
            "locks",
            settings.locks,
            "metastore.limit.locks",
            still_there,
            lambda request: len(request.component or ()),
            lambda request, answer: {answer.lockid: len(request.component or ())},
        ),
    }


def limited(handler: Handler, share: Quota, limits: AddressLimits) -> Handler:
    """Return the handler, which runs batches, with refusals for addresses that have reached their quota."""
    if not share.most:
        return handler
    door = _Door(share, limits)

    def run(calls: list[Call]) -> list[Any]:
        refused = door.refusals(calls)
        results = iter(handler.run([call for call in calls if call not in refused]))
        answers = [refused[call] if call in refused else next(results) for call in calls]
        for call, answer in zip(calls, answers, strict=True):
            if call.connection.usage is not None and not (call.lost or isinstance(answer, Exception)):
                call.connection.usage.held[share.kind].add(share.got(call.args[0], answer))
        return answers

    return dataclasses.replace(handler, run=run)


class _Door:
    """A gate for the calls of a batch, which are decided one after the other."""

    def __init__(self, share: Quota, limits: AddressLimits) -> None:
        self._share, self._limits = share, limits
        self._full_until: dict[str, float] = {}

    def refusals(self, calls: list[Call]) -> dict[Call, LimitReachedError]:
        """Return why calls are refused. A call whose effect is to be undone is never refused."""
        refused: dict[Call, LimitReachedError] = {}
        by_address: dict[str, int] = {}
        for call in calls:
            usage = call.connection.usage
            if usage is None or call.lost:
                continue
            before, wanted = by_address.get(usage.address, 0), self._share.wanted(call.args[0])
            if self._has_room(usage, before + wanted):
                by_address[usage.address] = before + wanted
            else:
                refused[call] = self._refusal(usage, before, wanted, call.method)
        return refused

    def _has_room(self, usage: Usage, wanted: int) -> bool:
        share, held, now = self._share, usage.held[self._share.kind], monotonic()
        if held.total + wanted <= share.most:
            return True
        if self._full_until.get(usage.address, 0.0) > now:
            return False
        counts = list(held.counts)
        held.keep(counts, share.present(counts) if counts else {})
        if held.total + wanted <= share.most:
            return True
        self._full_until = {address: until for address, until in self._full_until.items() if until > now}
        self._full_until[usage.address] = now + _LOOK_EVERY_SECONDS
        return False

    def _refusal(self, usage: Usage, before: int, wanted: int, method: str) -> LimitReachedError:
        share = self._share
        self._limits.reach(usage, share.kind, monotonic())
        return LimitReachedError(
            f"{method} is refused: {usage.address} has {usage.held[share.kind].total + before} {share.what} by way of "
            f"this server, asks for {wanted} more, and may have {share.most} ({share.setting}). End some of them, or "
            "wait until they expire."
        )
