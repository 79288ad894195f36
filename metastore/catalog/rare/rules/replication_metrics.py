"""Metrics of replications, a document for each execution, which keeps the policy that it began with.

Source: CAT-R4.
"""

from metastore.catalog.rare.rules.objects import REPLICATION_METRICS, Json, Method, Outcome, Place, Work, all_of, read
from metastore.errors import NoAnswerError


def _place(metrics: Json) -> Place:
    return Place(REPLICATION_METRICS, (str(metrics["scheduledExecutionId"]),))


def _scope(request: Json) -> list[Place]:
    return sorted({_place(metrics) for metrics in request["replicationMetricList"]})


def _added(work: Work) -> Outcome:
    """Add metrics of an execution, or replace the fields that are sent; an empty text counts as not sent."""
    changes = dict(work.found)
    for sent in work.request["replicationMetricList"]:
        known = changes.get(_place(sent), sent)
        parts = {field: sent.get(field) or known.get(field) for field in ("metadata", "progress")}
        changes[_place(sent)] = {
            **{field: known[field] for field in ("scheduledExecutionId", "policy", "dumpExecutionId")},
            **{field: text for field, text in parts.items() if text},
            **({"messageFormat": sent["messageFormat"]} if "messageFormat" in sent else {}),
        }
    return Outcome(changes=changes)


def _asked(request: Json) -> list[Place]:
    return [Place(REPLICATION_METRICS, ()) if "policy" in request else _of_execution(request)]


def _of_execution(request: Json) -> Place:
    """Return the place of an execution. Raises: NoAnswerError: without execution and policy Hive answers null."""
    if "scheduledExecutionId" not in request:
        raise NoAnswerError("get_replication_metrics needs a policy or a scheduledExecutionId")
    return _place(request)


def _listed(work: Work) -> Json:
    """Return the metrics of a policy, or else of an execution, the newest execution first."""
    policy = work.request.get("policy")
    found = (
        metrics
        for metrics in all_of(REPLICATION_METRICS, work.found).values()
        if policy is None or metrics["policy"] == policy
    )
    newest = sorted(found, key=lambda metrics: -metrics["scheduledExecutionId"])
    return {"replicationMetricList": newest}


METHODS = {"add_replication_metrics": Method(_scope, _added), "get_replication_metrics": read(_asked, _listed)}
