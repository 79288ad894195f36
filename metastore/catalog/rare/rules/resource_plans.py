"""Resource plans of workload management: pools, triggers, mappings, and which plan is active.

Rule: a plan is one object, with all that belongs to it. It changes only while it is disabled, but for its status, and a
namespace has at most one active plan.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping
from enum import IntEnum
from typing import Any

from metastore.catalog.rare.rules.objects import (
    Json,
    Key,
    Kind,
    Method,
    Outcome,
    Place,
    Work,
    all_of,
    name_of,
    part_of,
    read,
)
from metastore.errors import AlreadyExistsError, InvalidObjectError, InvalidOperationError, MetaError, NoSuchObjectError

PLAN = Kind("resource plan")
DEFAULT_NAMESPACE = "default"
"""The namespace of clients that send none: Hive 3, and Hive 4 without ``hive.server2.wm.namespace``."""
_DEFAULT_POOL = "default"
_POLICIES = {None, "FAIR", "FIFO"}
_ENTITIES = ("USER", "GROUP", "APPLICATION")
_ROUNDING = 0.00001
Path = str
Plans = Mapping[str, Json]


class Status(IntEnum):
    """The state of a plan, as on the wire."""

    ACTIVE = 1
    ENABLED = 2
    DISABLED = 3


# Names and plans


def _namespace(struct: Json) -> str:
    return name_of(struct.get("ns", DEFAULT_NAMESPACE), "namespace")


def _key(struct: Json, field: str = "resourcePlanName") -> Key:
    return _namespace(struct), name_of(struct.get(field), field)


def _path(path: str | None) -> Path:
    return name_of(path, "poolPath")


def _parent(path: Path) -> Path:
    return path.rpartition(".")[0]


def _plan(key: Key, found: Mapping[Place, Json]) -> Json:
    body = found.get(Place(PLAN, key))
    if body is None:
        raise NoSuchObjectError(f"There is no resource plan named: {key[1]} in {key[0]}")
    return body


def _require_disabled(plan: Json) -> None:
    if plan["status"] != Status.DISABLED:
        raise InvalidOperationError("Resource plan must be disabled to edit it.")


def _require_positive(parallelism: int | None, error: type[InvalidObjectError | InvalidOperationError]) -> None:
    if parallelism is not None and parallelism <= 0:
        raise error(f"Query parallelism should be positive, not {parallelism}")


# Answers to clients


def _summary(key: Key, plan: Json) -> Json:
    namespace, name = key
    fields = {
        field: plan[field] for field in ("status", "queryParallelism", "defaultPoolPath") if plan[field] is not None
    }
    return {"name": name, "ns": namespace, **fields}


def _full(key: Key, plan: Json) -> Json:
    """Return a WMFullResourcePlan; lists that are empty are absent, as from Hive."""
    within = {"resourcePlanName": key[1], "ns": key[0]}
    lists = {
        "mappings": [{**within, **mapping} for _, mapping in sorted(plan["mappings"].items())],
        "triggers": _triggers(key, plan),
        "poolTriggers": [
            {"pool": path, "trigger": trigger}
            for path, pool in sorted(plan["pools"].items())
            for trigger in pool["triggers"]
        ],
    }
    pools = [
        {**within, "poolPath": path, **{field: value for field, value in pool.items() if field != "triggers"}}
        for path, pool in sorted(plan["pools"].items())
    ]
    return {"plan": _summary(key, plan), "pools": pools, **{field: each for field, each in lists.items() if each}}


def _triggers(key: Key, plan: Json) -> list[Json]:
    return [
        {"resourcePlanName": key[1], "ns": key[0], "triggerName": name, **trigger}
        for name, trigger in sorted(plan["triggers"].items())
    ]


# Plans


def _create_plan(work: Work) -> Outcome:
    wanted = part_of(work.request, "resourcePlan")
    key = _key(wanted, "name")
    if not key[1]:
        raise InvalidObjectError("Resource name cannot be empty.")
    if Place(PLAN, key) in work.found:
        raise AlreadyExistsError(f"Resource plan {key[1]} already exists in {key[0]}")
    if "copyFrom" in work.request:
        copied = _plan(_copied_key(work.request), work.found)
        return Outcome({}, {Place(PLAN, key): {**copied, "status": Status.DISABLED}})
    parallelism = wanted.get("queryParallelism")
    _require_positive(parallelism, InvalidObjectError)
    size = work.settings.default_pool_size
    pools = {_DEFAULT_POOL: _pool({"allocFraction": 1.0, "queryParallelism": parallelism or size})} if size > 0 else {}
    plan = {
        "status": Status.DISABLED,
        "queryParallelism": parallelism,
        "defaultPoolPath": next(iter(pools), None),
        "pools": pools,
        "triggers": {},
        "mappings": {},
    }
    return Outcome({}, {Place(PLAN, key): plan})


def _copied_key(request: Json) -> Key:
    return _namespace(part_of(request, "resourcePlan")), name_of(request["copyFrom"], "copyFrom")


def _places_of_new(request: Json) -> list[Place]:
    copied = [Place(PLAN, _copied_key(request))] if "copyFrom" in request else []
    return [Place(PLAN, _key(part_of(request, "resourcePlan"), "name")), *copied]


def _drop_plan(work: Work) -> Outcome:
    key = _key(work.request)
    if _plan(key, work.found)["status"] == Status.ACTIVE:
        raise MetaError("Cannot drop an active resource plan")
    return Outcome({}, {Place(PLAN, key): None})


def _active(plans: Plans) -> str | None:
    return next((name for name, plan in plans.items() if plan["status"] == Status.ACTIVE), None)


def _alter_plan(work: Work) -> Outcome:
    request = work.request
    if sum(bool(request.get(flag)) for flag in ("isEnableAndActivate", "isForceDeactivate", "isReplace")) > 1:
        raise MetaError("Invalid request; multiple flags are set")
    namespace = _namespace(request)
    plans = {name: plan for (_, name), plan in all_of(PLAN, work.found).items()}
    change = _replaced if request.get("isReplace") else _altered
    activated, altered = change(request, plans, work)
    answer = {"fullResourcePlan": _full((namespace, activated), altered[activated])} if activated else {}
    return Outcome(
        answer,
        {
            Place(PLAN, (namespace, name)): altered.get(name)
            for name in {**plans, **altered}
            if plans.get(name) != altered.get(name)
        },
    )


def _altered(request: Json, plans: Plans, _work: Work) -> tuple[str | None, Plans]:
    """Return the name of the plan that became active, if one did, and all plans of the namespace."""
    changes = part_of(request, "resourcePlan")
    name = name_of(request["resourcePlanName"], "resourcePlanName") if "resourcePlanName" in request else _active(plans)
    if name is None:
        raise NoSuchObjectError(f"There is no active resource plan in {_namespace(request)}")
    plan = _plan((_namespace(request), name), _found(request, plans))
    status = changes.get("status")
    if "ns" in changes and _namespace(changes) != _namespace(request):
        raise InvalidOperationError(f"Cannot change ns; from {_namespace(request)} to {changes['ns']}")
    new_name = name_of(changes.get("name", name), "name")
    edits = {"isSetQueryParallelism", "isSetDefaultPoolPath"} & changes.keys() or new_name != name
    if edits and status is not None:
        raise InvalidOperationError("Cannot change values during status switch.")
    if status is not None:
        return _switched(name, plan, Status(status), plans, request)
    _require_disabled(plan)
    if not new_name:
        raise InvalidOperationError("Cannot rename to empty value.")
    if new_name != name and new_name in plans:
        raise AlreadyExistsError(f"Resource plan name should be unique: {new_name} exists in {_namespace(request)}")
    if changes.get("isSetQueryParallelism"):
        _require_positive(changes.get("queryParallelism"), InvalidOperationError)
        plan = {**plan, "queryParallelism": changes.get("queryParallelism")}
    if changes.get("isSetDefaultPoolPath"):
        path = _path(changes["defaultPoolPath"]) if "defaultPoolPath" in changes else None
        if path is not None:
            _pool_at(plan, path)
        plan = {**plan, "defaultPoolPath": path}
    return None, {**{other: kept for other, kept in plans.items() if other != name}, new_name: plan}


def _found(request: Json, plans: Plans) -> dict[Place, Json]:
    return {Place(PLAN, (_namespace(request), name)): plan for name, plan in plans.items()}


def _switched(name: str, plan: Json, status: Status, plans: Plans, request: Json) -> tuple[str | None, Plans]:
    """Return the plans after a change of one's status, as ``_altered`` does."""
    old = Status(plan["status"])
    if status == old:
        return None, plans
    if old == Status.ACTIVE and not request.get("isForceDeactivate"):
        raise InvalidOperationError(
            f"Resource plan {name} is active; activate another plan first, or disable workload management."
        )
    if old == Status.DISABLED:
        if status == Status.ACTIVE and not request.get("isEnableAndActivate"):
            raise InvalidOperationError(
                f"Resource plan {name} is disabled and should be enabled before activation (or in the same command)"
            )
        errors, _ = problems(plan)
        if errors:
            raise InvalidOperationError(f"ResourcePlan: {name} is invalid: {errors}")
    switched = {**plans, name: {**plan, "status": status}}
    before = _active(plans)
    if status != Status.ACTIVE:
        return None, switched
    if before is not None:
        switched[before] = {**plans[before], "status": Status.ENABLED}
    return name, switched


def _replaced(request: Json, plans: Plans, work: Work) -> tuple[str | None, Plans]:
    """Return the plans after one took the name and the status of another, as ``_altered`` does."""
    changes = part_of(request, "resourcePlan")
    if "resourcePlanName" not in request:
        raise InvalidOperationError("Cannot replace without specifying the source plan")
    if {"queryParallelism", "defaultPoolPath"} & changes.keys():
        raise InvalidOperationError("Cannot change values during replace.")
    if ("name" in changes) == (changes.get("status") == Status.ACTIVE):
        raise InvalidOperationError(
            "Specify either a name, or the status ACTIVE to replace the active plan; received "
            f"name={changes.get('name')}, status={changes.get('status')}"
        )
    name = name_of(request["resourcePlanName"], "resourcePlanName")
    new_name = name_of(changes["name"], "name") if "name" in changes else _active(plans)
    if new_name is None:
        raise NoSuchObjectError(f"There is no active resource plan in {_namespace(request)}")
    old, plan = (_plan((_namespace(request), each), _found(request, plans)) for each in (new_name, name))
    if name == new_name:
        raise InvalidOperationError("A plan cannot replace itself")
    past = f"{new_name}_old_{work.now:%Y_%m_%d_%H_%M_%S}"
    past = next(free for free in (past, *(f"{past}_{i}" for i in range(1, len(plans) + 1))) if free not in plans)
    rest = {other: kept for other, kept in plans.items() if other != name}
    replaced = {**rest, past: {**old, "status": Status.DISABLED}, new_name: {**plan, "status": old["status"]}}
    return (new_name if old["status"] == Status.ACTIVE else None), replaced


def problems(plan: Json) -> tuple[list[str], list[str]]:
    """Return errors, with which a plan cannot be enabled, and warnings, in Hive's words."""
    errors, warnings, total = [], [], 0
    shares: dict[Path, float] = defaultdict(float)
    for path, pool in sorted(plan["pools"].items()):
        shares[_parent(path)] += pool["allocFraction"]
        if pool["queryParallelism"] < 1:
            errors.append(f"Invalid query parallelism for pool: {path}")
        else:
            total += pool["queryParallelism"]
    most = plan["queryParallelism"]
    if most is not None and most < total:
        errors.append(f"Sum of all pools' query parallelism: {total} exceeds resource plan query parallelism: {most}")
    elif most is not None and most != total:
        warnings.append(
            f"Sum of all pools' query parallelism: {total} is less than resource plan query parallelism: {most}"
        )
    for parent, share in sorted(shares.items()):
        if not parent and abs(1.0 - share) > _ROUNDING:
            errors.append(f"Sum of root children pools' alloc fraction should be 1.0 got: {share} for pool: ")
        elif parent and share - 1.0 > _ROUNDING:
            errors.append(
                f"Sum of children pools' alloc fraction should be less than 1 got: {share} for pool: {parent}"
            )
    return errors, warnings


# Pools, triggers and mappings of a plan


def _pool(struct: Json) -> Json:
    policy = struct.get("schedulingPolicy")
    _require_policy(policy)
    named = {} if policy is None else {"schedulingPolicy": policy}
    return {
        "allocFraction": struct.get("allocFraction", 0.0),
        "queryParallelism": struct.get("queryParallelism", 0),
        **named,
        "triggers": [],
    }


def _require_policy(policy: str | None) -> None:
    if (policy and policy.strip().upper()) not in _POLICIES:
        raise InvalidObjectError(f"Invalid scheduling policy {policy}: it is fair or fifo")


def _pool_at(plan: Json, path: Path) -> Json:
    if path not in plan["pools"]:
        raise NoSuchObjectError(f"Cannot find pool: {path}")
    pool: Json = plan["pools"][path]
    return pool


def _require_room(plan: Json, path: Path) -> None:
    if not path:
        raise InvalidObjectError("A pool needs a path")
    if _parent(path) and _parent(path) not in plan["pools"]:
        raise NoSuchObjectError("Pool path is invalid, the parent does not exist")
    if path in plan["pools"]:
        raise AlreadyExistsError(f"Pool already exists: {path}")


def _create_pool(plan: Json, struct: Json) -> Json:
    path = _path(struct.get("poolPath"))
    _require_room(plan, path)
    return {**plan, "pools": {**plan["pools"], path: _pool(struct)}}


def _alter_pool(plan: Json, request: Json) -> Json:
    path, changes = _path(request.get("poolPath")), part_of(request, "pool")
    pool = {
        **_pool_at(plan, path),
        **{field: changes[field] for field in ("allocFraction", "queryParallelism") if field in changes},
    }
    if changes.get("isSetSchedulingPolicy"):
        _require_policy(changes.get("schedulingPolicy"))
        pool = {field: value for field, value in pool.items() if field != "schedulingPolicy"}
        pool |= {"schedulingPolicy": changes["schedulingPolicy"]} if "schedulingPolicy" in changes else {}
    plan = {**plan, "pools": {**plan["pools"], path: pool}}
    new_path = _path(changes.get("poolPath", path))
    if new_path == path:
        return plan
    _require_room(plan, new_path)
    if new_path.startswith(f"{path}."):
        raise NoSuchObjectError(f"Pool path is invalid: {path} cannot be below itself")

    def moved(old: Path | None) -> Path | None:
        return new_path + old[len(path) :] if old is not None and f"{old}.".startswith(f"{path}.") else old

    return {
        **plan,
        "defaultPoolPath": moved(plan["defaultPoolPath"]),
        "pools": {moved(old): kept for old, kept in plan["pools"].items()},
        "mappings": {
            entity: {**mapping, **({"poolPath": moved(mapping["poolPath"])} if "poolPath" in mapping else {})}
            for entity, mapping in plan["mappings"].items()
        },
    }


def _drop_pool(plan: Json, request: Json) -> Json:
    path = _path(request.get("poolPath"))
    if plan["defaultPoolPath"] == path:
        raise InvalidOperationError("Cannot drop default pool of a resource plan")
    if any(_parent(other) == path for other in plan["pools"]):
        raise InvalidOperationError("Cannot drop a pool that has child pools")
    if path not in plan["pools"]:
        raise NoSuchObjectError(f"Cannot delete pool: {path}")
    if any(mapping.get("poolPath") == path for mapping in plan["mappings"].values()):
        raise InvalidOperationError(f"Please remove all mappings for this pool: {path}")
    return {**plan, "pools": {other: pool for other, pool in plan["pools"].items() if other != path}}


def _trigger_name(struct: Json) -> str:
    return name_of(struct.get("triggerName"), "triggerName")


def _trigger_fields(struct: Json) -> Json:
    return {
        field: struct[field] for field in ("triggerExpression", "actionExpression", "isInUnmanaged") if field in struct
    }


def _require_trigger(plan: Json, name: str) -> None:
    if name not in plan["triggers"]:
        raise NoSuchObjectError(f"Cannot find trigger with name: {name}")


def _create_trigger(plan: Json, struct: Json) -> Json:
    name = _trigger_name(struct)
    if not name:
        raise InvalidObjectError("A trigger needs a name")
    if name in plan["triggers"]:
        raise AlreadyExistsError(f"Trigger already exists, use alter: {name}")
    return {**plan, "triggers": {**plan["triggers"], name: {"isInUnmanaged": False, **_trigger_fields(struct)}}}


def _alter_trigger(plan: Json, struct: Json) -> Json:
    name = _trigger_name(struct)
    _require_trigger(plan, name)
    return {**plan, "triggers": {**plan["triggers"], name: {**plan["triggers"][name], **_trigger_fields(struct)}}}


def _drop_trigger(plan: Json, request: Json) -> Json:
    name = _trigger_name(request)
    if name not in plan["triggers"]:
        raise NoSuchObjectError(f"Cannot delete trigger: {name}")
    return {
        **plan,
        "triggers": {other: trigger for other, trigger in plan["triggers"].items() if other != name},
        "pools": {path: _linked(pool, name, drop=True) for path, pool in plan["pools"].items()},
    }


def _linked(pool: Json, trigger: str, *, drop: bool) -> Json:
    others = [each for each in pool["triggers"] if each != trigger]
    return {**pool, "triggers": others if drop else sorted([*others, trigger])}


def _link(plan: Json, request: Json) -> Json:
    path, trigger = _path(request.get("poolPath")), _trigger_name(request)
    pool = _pool_at(plan, path)
    _require_trigger(plan, trigger)
    linked = _linked(pool, trigger, drop=bool(request.get("drop")))
    return {**plan, "pools": {**plan["pools"], path: linked}}


def _entity(struct: Json) -> tuple[str, str]:
    return part_of(struct, "entityType").strip().upper(), name_of(struct.get("entityName"), "entityName")


def _map(plan: Json, request: Json) -> Json:
    struct = part_of(request, "mapping")
    kind, name = _entity(struct)
    if kind not in _ENTITIES:
        raise InvalidObjectError(f"Invalid entity type {kind}: it is one of {', '.join(_ENTITIES)}")
    pool = {"poolPath": _path(struct["poolPath"])} if "poolPath" in struct else {}
    if pool:
        _pool_at(plan, pool["poolPath"])
    old, entity = plan["mappings"].get(f"{kind} {name}"), f"{kind} {name}"
    if request.get("update"):
        if old is None:
            raise NoSuchObjectError(f"Cannot find mapping of {kind} {name}")
        ordering = old["ordering"]  # Hive changes the pool alone.
    elif old is not None:
        raise AlreadyExistsError(f"Mapping of {kind} {name} already exists, use update")
    else:
        ordering = struct.get("ordering", 0)
    mapping = {"entityType": kind, "entityName": name, **pool, "ordering": ordering}
    return {**plan, "mappings": {**plan["mappings"], entity: mapping}}


def _unmap(plan: Json, request: Json) -> Json:
    kind, name = _entity(part_of(request, "mapping"))
    entity = f"{kind} {name}"
    if entity not in plan["mappings"]:
        raise NoSuchObjectError(f"Cannot delete mapping of {entity}")
    return {**plan, "mappings": {other: kept for other, kept in plan["mappings"].items() if other != entity}}


# Methods


def _edit(change: Callable[[Json, Json], Json], within: str | None = None, *, whole: bool = False) -> Method:
    """Declare a method that changes a disabled plan.

    ``within``: the request's struct that names the plan. ``change`` gets that, or the ``whole`` request.
    """

    def key_of(request: Json) -> Key:
        return _key(part_of(request, within) if within else request)

    def rule(work: Work) -> Outcome:
        key, request = key_of(work.request), work.request
        plan = _plan(key, work.found)
        _require_disabled(plan)
        changed = change(plan, request if whole or within is None else request[within])
        return Outcome({}, {Place(PLAN, key): changed})

    return Method(lambda request: [Place(PLAN, key_of(request))], rule)


def _reading(answer: Callable[[Key, Json], Any]) -> Method:
    """Declare a method that reads a plan."""
    return read(
        lambda request: [Place(PLAN, _key(request))],
        lambda work: answer(_key(work.request), _plan(_key(work.request), work.found)),
    )


def _of_namespace(request: Json) -> list[Place]:
    return [Place(PLAN, (_namespace(request),))]


def _validation(_key: Key, plan: Json) -> Json:
    errors, warnings = problems(plan)
    return {"errors": errors, "warnings": warnings}


def _active_plan(work: Work) -> Json:
    plans = all_of(PLAN, work.found)
    active = [_full(key, plan) for key, plan in plans.items() if plan["status"] == Status.ACTIVE]
    return {"resourcePlan": active[0]} if active else {}


METHODS = {
    "create_resource_plan": Method(_places_of_new, _create_plan),
    "get_resource_plan": _reading(lambda key, plan: {"resourcePlan": _full(key, plan)}),
    "get_all_resource_plans": read(
        _of_namespace,
        lambda work: {"resourcePlans": [_summary(key, plan) for key, plan in all_of(PLAN, work.found).items()]},
    ),
    "get_active_resource_plan": read(_of_namespace, _active_plan),
    "alter_resource_plan": Method(_of_namespace, _alter_plan),
    "validate_resource_plan": _reading(_validation),
    "drop_resource_plan": Method(lambda request: [Place(PLAN, _key(request))], _drop_plan),
    "create_wm_trigger": _edit(_create_trigger, "trigger"),
    "alter_wm_trigger": _edit(_alter_trigger, "trigger"),
    "drop_wm_trigger": _edit(_drop_trigger),
    "get_triggers_for_resourceplan": _reading(lambda key, plan: {"triggers": _triggers(key, plan)}),
    "create_wm_pool": _edit(_create_pool, "pool"),
    "alter_wm_pool": _edit(_alter_pool, "pool", whole=True),
    "drop_wm_pool": _edit(_drop_pool),
    "create_or_update_wm_mapping": _edit(_map, "mapping", whole=True),
    "drop_wm_mapping": _edit(_unmap, "mapping", whole=True),
    "create_or_drop_wm_trigger_to_pool_mapping": _edit(_link),
}
