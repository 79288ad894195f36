"""Settings of a compaction's job from a request, a table or a database, and the limits on them.

Rule: a job runs as the service's user, so a user who may set a property must not be able to name code, files, hosts or
secrets in it. The resources of a job, its queue, and the layout of its ORC output are harmless; all else is for the
operator (``metastore.compactor.spark.conf``). Other properties are refused when they are set, and again when a job is
to use them. The request wins over the table, the table over the database, that over the global settings. Source:
COMP-15.
"""

import re
from collections.abc import Iterable, Mapping

_PREFIX = "compactor."
_OUTPUT_PREFIX = "tblprops."
_ORC_PREFIX = "orc."
_COUNT = re.compile(r"[0-9]{1,6}")
_SIZE = re.compile(r"[0-9]{1,6}[kmgtKMGT]?[bB]?")
_QUEUE = re.compile(r"[\w.\-]{1,200}", re.ASCII)
_BYTES = re.compile(r"[0-9]{1,10}")
_FLAG = re.compile(r"true|false", re.IGNORECASE)

SPARK_QUEUE = "spark.yarn.queue"
_QUEUES = (
    SPARK_QUEUE,
    "hive.compactor.job.queue",
    "mapreduce.job.queuename",
    "mapred.job.queue.name",
    "tez.queue.name",
)
"""Names of the one setting "which queue"; of one place the first that it has counts."""

_OF_SPARK = {
    "spark.driver.cores": _COUNT,
    "spark.executor.cores": _COUNT,
    "spark.executor.instances": _COUNT,
    "spark.driver.memory": _SIZE,
    "spark.driver.memoryOverhead": _SIZE,
    "spark.executor.memory": _SIZE,
    "spark.executor.memoryOverhead": _SIZE,
    "spark.default.parallelism": _COUNT,
    "spark.sql.shuffle.partitions": _COUNT,
    "spark.dynamicAllocation.maxExecutors": _COUNT,
}
# Users of Hive set these for its own Workers. Our jobs have no containers of that kind.
_OF_HIVE = {"mapreduce.map.memory.mb": _COUNT, "mapreduce.reduce.memory.mb": _COUNT, "hive.tez.container.size": _COUNT}
_HARMLESS = _OF_SPARK | _OF_HIVE | dict.fromkeys(_QUEUES, _QUEUE)
_OF_ORC = {
    "orc.compress": re.compile(r"none|zlib|snappy|lz4|zstd", re.IGNORECASE),
    "orc.compress.size": _BYTES,
    "orc.stripe.size": _BYTES,
    "orc.row.index.stride": _BYTES,
    "orc.create.index": _FLAG,
    "orc.block.padding": _FLAG,
    "orc.bloom.filter.columns": re.compile(r"\w[\w,]{0,1999}"),
    "orc.bloom.filter.fpp": re.compile(r"0?\.[0-9]{1,9}"),
    "orc.encoding.strategy": re.compile(r"speed|compression", re.IGNORECASE),
    "orc.compression.strategy": re.compile(r"speed|compression", re.IGNORECASE),
}
_SECRETS_OF_ORC = frozenset({"orc.encrypt", "orc.mask", "orc.key.provider"})


def job_properties(database: Mapping[str, str], table: Mapping[str, str], request: Mapping[str, str]) -> dict[str, str]:
    """Return a job's properties.

    They are ``compactor.`` of all; ``orc.`` of the table, over it ``tblprops.orc.`` of the request.
    """
    merged: dict[str, str] = {}
    for level in (_of(database, _PREFIX), _of(table, _PREFIX, _ORC_PREFIX), _requested(request)):
        if any(_is_queue(key) for key in level):
            merged = {key: value for key, value in merged.items() if not _is_queue(key)}
        merged |= level
    return merged


def spark_settings(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the allowed settings of the job's Spark session that properties ask for."""
    asked = {
        key.removeprefix(_PREFIX): value
        for key, value in properties.items()
        if key.startswith(_PREFIX) and _is_harmless(key, value)
    }
    queue = next((asked[name] for name in _QUEUES if asked.get(name)), None)
    settings = {name: value for name, value in asked.items() if name in _OF_SPARK}
    return settings if queue is None else {**settings, SPARK_QUEUE: queue}


def orc_settings(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the allowed settings of ORC's writer that properties ask for."""
    return {
        key: value
        for key, value in properties.items()
        if key in _OF_ORC and _OF_ORC[key].fullmatch(value.strip()) is not None
    }


def refused_property(properties: Mapping[str, str], known: Mapping[str, str] | None = None) -> str | None:
    """Return why a database, table or request cannot have these properties, None if it can.

    ``known``: properties that it has already.
    """
    for key, value in properties.items():
        if key.lower().startswith(_PREFIX) and not _is_harmless(key, value) and (known or {}).get(key) != value:
            return (
                f"The property {key!r} with the value {value!r} must not reach a compaction's job, which runs as "
                f"the metastore's user: only these may, each with a plain value: {_named(_PREFIX, _HARMLESS)}"
            )
    return None


def refused_output(request: Mapping[str, str]) -> str | None:
    """Return the reason to refuse a request's properties of its output; None if all are accepted.

    A property that would not change the compaction's output is refused.
    """
    for key, value in request.items():
        name = key.lower().removeprefix(_OUTPUT_PREFIX)
        if name != key.lower() and not orc_settings({name: value}):
            return (
                f"The property {key!r} with the value {value!r} would not change what a compaction writes: "
                f"these do, each with a plain value: {_named(_OUTPUT_PREFIX, _OF_ORC)}"
            )
    return None


def refused_for_others(request: Mapping[str, str]) -> str | None:
    """Return why a request cannot be for a table that is not stored as ORC; None if it can."""
    keys = sorted(key for key in request if key.lower().startswith(_OUTPUT_PREFIX))
    return f"The property {keys[0]!r} would have no effect: the table is not stored as ORC" if keys else None


def refused_format(properties: Mapping[str, str]) -> str | None:
    """Return why the files of a table with these properties cannot be rewritten; None if they can."""
    for key, value in properties.items():
        if key in _SECRETS_OF_ORC:
            return f"The table has the property {key}, and a compaction would write its columns unencrypted"
        if key in _OF_ORC and not orc_settings({key: value}):
            return f"The table has the property {key} = {value!r}, which is no value that ORC's writer takes"
    return None


def _of(properties: Mapping[str, str], *prefixes: str) -> dict[str, str]:
    return {key: value for key, value in properties.items() if key.startswith(prefixes)}


def _requested(request: Mapping[str, str]) -> dict[str, str]:
    output = {key.removeprefix(_OUTPUT_PREFIX): value for key, value in _of(request, _OUTPUT_PREFIX).items()}
    return _of(request, _PREFIX) | _of(output, _ORC_PREFIX)


def _is_queue(key: str) -> bool:
    return key.removeprefix(_PREFIX) in _QUEUES


def _is_harmless(key: str, value: str) -> bool:
    form = _HARMLESS.get(key.removeprefix(_PREFIX)) if key.startswith(_PREFIX) else None
    return form is not None and form.fullmatch(value) is not None


def _named(prefix: str, names: Iterable[str]) -> str:
    return ", ".join(f"{prefix}{name}" for name in sorted(names))
