"""Scheduled queries: which is due, who runs it, and what became of its executions.

Rule: an execution is given to one poller, and a query has at most one that has not ended. The query's object holds that
one; an execution that ended is an object of its own, for as long as its retention says.
"""

from collections.abc import Mapping
from datetime import datetime
from enum import IntEnum

from metastore.catalog.rare.rules.objects import (
    SCHEDULED_EXECUTION,
    SCHEDULED_QUERY,
    Json,
    Key,
    Method,
    Outcome,
    Place,
    Work,
    all_of,
    read,
)
from metastore.catalog.rare.rules.quartz import next_execution
from metastore.errors import AlreadyExistsError, InvalidInputError, InvalidOperationError, MetaError, NoSuchObjectError

QUERY, EXECUTION = SCHEDULED_QUERY, SCHEDULED_EXECUTION
_LONGEST_MESSAGE = 1000
_FIELDS = ("schedule", "user", "query")
Changes = dict[Place, Json | None]


class State(IntEnum):
    """The state of an execution, as on the wire."""

    INITED = 0
    EXECUTING = 1
    FAILED = 2
    FINISHED = 3
    TIMED_OUT = 4
    AUTO_DISABLED = 5


_FAILURES = {State.FAILED, State.TIMED_OUT}
_ENDS = {*_FAILURES, State.FINISHED}
_NEXT: Mapping[State, set[State]] = {
    State.INITED: {*State} - {State.INITED, State.AUTO_DISABLED},
    State.EXECUTING: {State.EXECUTING, *_ENDS},
}


class Maintenance(IntEnum):
    """The kinds of maintenance, as on the wire."""

    CREATE = 1
    ALTER = 2
    DROP = 3


def _key(struct: Json) -> Key:
    return struct["clusterNamespace"], struct["scheduleName"]


def _words(key: Key) -> str:
    return f"{key[1]}@{key[0]}"


def _due(schedule: str | None, after: int) -> int | None:
    if schedule is None:
        raise InvalidInputError("A scheduled query needs a schedule")
    return next_execution(schedule, datetime.fromtimestamp(after))  # noqa: DTZ006 - as Hive: the server's zone


def _seconds(work: Work) -> int:
    return int(work.now.timestamp())


def _require_enabled(work: Work) -> None:
    if not work.settings.scheduled_queries:
        raise MetaError("Scheduled query request processing is disabled via metastore.scheduled.queries.enabled")


# Definitions


def _get(work: Work) -> Json:
    key = _key(work.request)
    body = work.found.get(Place(QUERY, key))
    if body is None:
        raise NoSuchObjectError(f"There is no scheduled query for: {_words(key)}")
    shown = {field: body[field] for field in ("enabled", *_FIELDS, "nextExecution") if body.get(field) is not None}
    return {"scheduleKey": work.request, **shown}


def _maintain(work: Work) -> Outcome:
    _require_enabled(work)
    struct = work.request["scheduledQuery"]
    key = _key(struct["scheduleKey"])
    place = Place(QUERY, key)
    old = work.found.get(place)
    match work.request["type"]:
        case Maintenance.CREATE if old is not None:
            raise AlreadyExistsError(f"Scheduled query with name: {_words(key)} already exists.")
        case Maintenance.ALTER | Maintenance.DROP if old is None:
            raise NoSuchObjectError(f"Scheduled query with name: {_words(key)} doesn't exists.")
        case Maintenance.DROP:
            return Outcome(changes={place: None})
    kept, given = ({"failures": 0}, None) if old is None else (old, struct.get("nextExecution"))
    due = _due(struct.get("schedule"), _seconds(work))
    fields = {field: struct.get(field) for field in _FIELDS}
    body = {**kept, **fields, "enabled": struct.get("enabled", False), "nextExecution": given or due}
    return Outcome(changes={place: body})


# Executions


def _poll(work: Work) -> Outcome:
    _require_enabled(work)
    now = _seconds(work)
    due = [
        (body["nextExecution"], key)
        for key, body in all_of(QUERY, work.found).items()
        if body["enabled"]
        and "active" not in body
        and body["nextExecution"] is not None
        and body["nextExecution"] <= now
    ]
    if not due:
        return Outcome({})
    _, key = min(due)
    body = work.found[Place(QUERY, key)]
    active = {"id": work.number, "state": State.INITED, "startTime": now, "lastUpdateTime": now}
    namespace, name = key
    answer = {
        "scheduleKey": {"scheduleName": name, "clusterNamespace": namespace},
        "executionId": work.number,
        "query": f"/* schedule: {name} */{body['query'] or ''}",
    }
    changed = {**body, "nextExecution": _due(body["schedule"], now), "active": active}
    named = {} if body["user"] is None else {"user": body["user"]}
    return Outcome({**answer, **named}, {Place(QUERY, key): changed})


def _places_of_progress(request: Json) -> list[Place]:
    return [Place(QUERY, ()), Place(EXECUTION, (str(request["scheduledExecutionId"]),))]


def _progress(work: Work) -> Outcome:
    _require_enabled(work)
    number, state = work.request["scheduledExecutionId"], work.request["state"]
    active = {
        body["active"]["id"]: (key, body) for key, body in all_of(QUERY, work.found).items() if "active" in body
    }.get(number)
    execution = active[1]["active"] if active else work.found.get(Place(EXECUTION, (str(number),)))
    if execution is None:
        raise MetaError(f"There is no scheduled execution {number}: its query was dropped, or it ended long ago")
    old = State(execution["state"])
    if active is None or state not in _NEXT[old]:
        raise InvalidOperationError(f"Invalid state change: {old.name}=>{State(state).name}")
    return Outcome(changes=_moved(*active, State(state), work, work.request))


def _moved(key: Key, body: Json, state: State, work: Work, info: Json) -> Changes:
    """Return the changes for an active execution that reaches a state. ``info``: the client's report about it."""
    now = _seconds(work)
    told = {field: info[field] for field in ("executorQueryId", "errorMessage") if field in info}
    if "errorMessage" in told:
        told["errorMessage"] = _abbreviated(told["errorMessage"])
    active = {**body["active"], **told, "state": state}
    if state not in _ENDS:
        return {Place(QUERY, key): {**body, "active": {**active, "lastUpdateTime": now}}}
    idle = {field: value for field, value in body.items() if field != "active"}
    failures = body["failures"] + 1 if state in _FAILURES else 0
    return {
        **_ended(key, {**active, "endTime": now}),
        **_after_failures(key, {**idle, "failures": failures}, work, active["id"]),
    }


def _ended(key: Key, execution: Json, *further: str) -> Changes:
    """Return the record of an execution that ended."""
    namespace, name = key
    body = {field: value for field, value in execution.items() if field != "lastUpdateTime"}
    place = Place(EXECUTION, (str(execution["id"]), *further))
    return {place: {"clusterNamespace": namespace, "scheduleName": name, **body}}


def _after_failures(key: Key, body: Json, work: Work, number: int) -> Changes:
    """Return the query; it is paused or disabled if its last executions failed."""
    failures, now = body["failures"], _seconds(work)
    disables, skips = work.settings.disable_after, work.settings.skip_after
    due = body["nextExecution"]
    for _ in range(min(skips, failures) - 1):
        due = due and _due(body["schedule"], due)
    rested = {**body, "nextExecution": due}
    if not 0 < disables <= failures:
        return {Place(QUERY, key): rested}
    why = f"Disabling query after {disables} consecutive failures"
    disabling = {"id": number, "state": State.AUTO_DISABLED, "startTime": now, "endTime": now, "errorMessage": why}
    return {
        **_ended(key, disabling, State.AUTO_DISABLED.name),
        Place(QUERY, key): {**rested, "enabled": False, "failures": 0},
    }


def _abbreviated(message: str) -> str:
    """Return a message that may be followed by a stack trace in at most ``_LONGEST_MESSAGE`` characters."""
    if len(message) < _LONGEST_MESSAGE:
        return message
    line = message.partition("\n")[0]
    return line if len(line) <= _LONGEST_MESSAGE else f"{line[: _LONGEST_MESSAGE - 3]}..."


def _time_out(work: Work) -> Outcome:
    """End executions without progress; return their number."""
    longest = work.settings.execution_timeout
    before, changes, count = int((work.now - longest).timestamp()), Changes(), 0
    for key, body in all_of(QUERY, work.found).items():
        active = body.get("active")
        if active is None or active["lastUpdateTime"] > before:
            continue
        why = (
            f"Query stuck in: {State(active['state']).name} state for >{longest.total_seconds():.0f} seconds. "
            "Execution timed out."
        )
        changes |= _moved(key, body, State.TIMED_OUT, work, {"errorMessage": why})
        count += 1
    return Outcome(count, changes)


TIME_OUT = Method(lambda _: [Place(QUERY, ())], _time_out)
"""The house-keeper's part: the answer is how many executions it ended."""

METHODS = {
    "get_scheduled_query": read(lambda request: [Place(QUERY, _key(request))], _get),
    "scheduled_query_maintenance": Method(
        lambda request: [Place(QUERY, _key(request["scheduledQuery"]["scheduleKey"]))], _maintain
    ),
    "scheduled_query_poll": Method(lambda request: [Place(QUERY, (request["clusterNamespace"],))], _poll),
    "scheduled_query_progress": Method(_places_of_progress, _progress),
}
