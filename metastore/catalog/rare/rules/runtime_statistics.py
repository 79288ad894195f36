"""Statistics of runs, by which HiveServer2 plans a query anew. Each has its time, and the newest are read first.

Source: CAT-R3.
"""

from metastore.catalog.rare.rules.objects import RUNTIME_STATISTIC, Json, Method, Outcome, Place, Work, read

_DIGITS = 20
"""Digits of a number in a key, so that keys sort as numbers do."""


def _added(work: Work) -> Outcome:
    key = (f"{work.number:0{_DIGITS}}",)
    statistic = {**work.request, "createTime": int(work.now.timestamp())}
    return Outcome(changes={Place(RUNTIME_STATISTIC, key): statistic})


def _newest(work: Work) -> list[Json]:
    """Return the newest statistics until their weights reach ``maxWeight``; below 0: all.

    ``maxCreateTime``: only older ones, if it is above 0.
    """
    most, before = work.request["maxWeight"], work.request["maxCreateTime"]
    newest: list[Json] = []
    weight = 0
    for statistic in reversed(list(work.found.values())):
        if before > 0 and statistic["createTime"] >= before:
            continue
        newest.append(statistic)
        weight += statistic["weight"]
        if 0 <= most <= weight:
            break
    return newest


METHODS = {
    "add_runtime_stats": Method(lambda _: (), _added),
    "get_runtime_stats": read(lambda _: [Place(RUNTIME_STATISTIC, ())], _newest),
}
