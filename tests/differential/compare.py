"""Comparison of two answers: what cannot be equal is taken out by one table, what is left is named field by field."""

import json
import re

from tests.differential.codec import FACTS, fields_of, kind_of

# What two metastores cannot have in common, by the field's name.
TIMES = {"createTime", "lastAccessTime", "transient_lastDdlTime", "lastAnalyzed", "grantTime", "eventTime", "lastheartbeat", "acquiredat", "start", "startedTime",
         "lastHeartbeatTime", "enqueueTime", "endTime", "commitTime", "createdAt", "nextExecution", "txnheartbeatcount", "heartbeatCount"}
IDS = {"id", "txnid", "txnId", "txn_ids", "lockid", "txn_high_water_mark", "min_open_txn", "open_txns", "txnids", "lockIdInternal", "eventId", "writeId",
       "highestWriteId", "lastCompactionId", "invalidWriteIds", "minOpenWriteId", "writeIdHighWaterMark", "materializationTime", "idHighWaterMark", "aborted", "nosuch"}
KEPT = {"Table.writeId", "Partition.writeId"}  # -1 and "absent" count here
WHOLE = {  # answers whose value is a clock's, a counter's or a host's
    "aliveSince": "a time", "getCounters": "counters", "getCounter": "a counter", "get_metastore_db_uuid": "an id", "getOptions": "options of the process",
    "get_current_notificationEventId": "an id", "get_max_allocated_table_write_id": "an id", "get_latest_txnid_in_conflict": "an id"}
_GENERATED = re.compile(r"[a-z]{2}_\d+_\d{10,}_\d+")
_OF_OTHERS = re.compile(r"scene\d+", re.IGNORECASE)
UNORDERED = re.compile(r"get_(all_)?(databases|tables|functions|catalogs|table_objects|table_meta|partitions_by_names|.*constraints|.*keys|table_names).*|get_tables_ext")


def settled(value, declared, asked, scene, since="9"):
    """Return the value with texts for what the servers cannot have in common; ``since``: fields of later versions are left out."""
    kind = kind_of(declared)
    match kind[0]:
        case "struct":
            found = {}
            for field in fields_of(kind[1]):
                name = field["name"]
                if name in value and field["since"] <= since:
                    inner = settled(value[name], field["type"], asked, scene, since)
                    found[name] = named(f"{kind[1]}.{name}", name, inner)
            return found
        case "list" | "set":
            found = [settled(item, kind[1], asked, scene, since) for item in value]
            return sorted(found, key=json.dumps) if kind[1].startswith("SQL") else found
        case "map" if isinstance(value, dict):
            return {key: named(key, key, settled(item, kind[2], asked, scene, since)) for key, item in sorted(value.items())}
    return _GENERATED.sub("<generated>", scene.hidden(value.replace(asked.work, "{work}"))) if isinstance(value, str) else value


def without_others(value):
    """Return a list, or the lists of an answer, without what belongs to other scenes."""
    if isinstance(value, dict):
        return {key: without_others(item) if isinstance(item, list) else item for key, item in value.items()}
    return [item for item in value if not _OF_OTHERS.search(json.dumps(item))] if isinstance(value, list) else value


def named(full, name, value):
    if name in TIMES and value not in (0, "0", None) and not isinstance(value, dict):
        return "<time>"
    if name in IDS and full not in KEPT and isinstance(value, int | list) and value not in (0, -1, []):
        return "<id>"
    return value


def answer_of(method, answer, asked, scene, since="9"):
    """Return an answer in the form in which answers are compared."""
    match answer:
        case ("error", kind, _):
            return kind
        case ("refused", _):
            return "refused"
        case ("unknown",):
            return "unknown"
    if method in WHOLE:
        return ["ok", WHOLE[method]]
    returns = FACTS["methods"][method]["returns"]
    value = None if answer[1] is None else settled(answer[1], returns, asked, scene, since)
    value = without_others(value)
    if isinstance(value, list) and UNORDERED.fullmatch(method):
        value = sorted(value, key=json.dumps)
    return ["ok", value]


def shown(value):
    return "null" if value is None else value if isinstance(value, str) and value in {"<time>", "<id>"} else json.dumps(value, ensure_ascii=False)[:160]


def differences(theirs, ours, path=""):
    """Yield what differs, a line for each field: ``path: theirs → ours``."""
    if theirs == ours:
        return
    if isinstance(theirs, dict) and isinstance(ours, dict):
        for key in sorted(theirs.keys() | ours.keys()):
            yield from differences(theirs.get(key), ours.get(key), f"{path}.{key}" if path else key)
    elif isinstance(theirs, list) and isinstance(ours, list) and theirs[:1] == ours[:1] == ["ok"] and not path:
        yield from differences(theirs[1], ours[1], "answer")
    elif isinstance(theirs, list) and isinstance(ours, list) and len(theirs) == len(ours):
        found = dict.fromkeys(line for one, other in zip(theirs, ours, strict=True) for line in differences(one, other, f"{path}[]"))
        yield from found
    elif isinstance(theirs, list) and isinstance(ours, list):
        yield f"{path}: {len(theirs)} → {len(ours)} items"
    elif not path:
        yield f"{outcome(theirs)} → {outcome(ours)}"
    else:
        yield f"{path}: {shown(theirs)} → {shown(ours)}"


def outcome(answer):
    return answer if isinstance(answer, str) else "ok"
