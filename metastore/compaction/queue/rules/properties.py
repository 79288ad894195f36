"""Which settings of a compaction's job may come from a table's properties or from a request.

Rule: a job runs as the service's user, so a user who may set a property must not be able to name code, files, hosts or
secrets in it. How much a job may take and where it queues is harmless; all else is the operator's
(``metastore.compactor.spark.conf``). Refused when it is set, and again when a job is to use it.
"""

import re
from collections.abc import Mapping

_PREFIX = "compactor."
_COUNT = re.compile(r"[0-9]{1,6}")
_SIZE = re.compile(r"[0-9]{1,6}[kmgtKMGT]?[bB]?")
_QUEUE = re.compile(r"[\w.\-]{1,200}", re.ASCII)

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
    "spark.yarn.queue": _QUEUE,
}
# What users of Hive set for its own Workers. Our jobs do not know them.
_OF_HIVE = {
    "hive.compactor.job.queue": _QUEUE,
    "mapreduce.job.queuename": _QUEUE,
    "tez.queue.name": _QUEUE,
    "mapreduce.map.memory.mb": _COUNT,
    "mapreduce.reduce.memory.mb": _COUNT,
    "hive.tez.container.size": _COUNT,
}
_HARMLESS = _OF_SPARK | _OF_HIVE


def spark_settings(properties: Mapping[str, str]) -> dict[str, str]:
    """The settings of the job's Spark session that properties ask for and may."""
    return {
        key.removeprefix(_PREFIX): value
        for key, value in properties.items()
        if key.removeprefix(_PREFIX) in _OF_SPARK and _is_harmless(key, value)
    }


def refused_property(properties: Mapping[str, str], known: Mapping[str, str] | None = None) -> str | None:
    """Why a table or a request cannot have these properties, None if it can; ``known``: it has them already."""
    for key, value in properties.items():
        if key.lower().startswith(_PREFIX) and not _is_harmless(key, value) and (known or {}).get(key) != value:
            return (
                f"The property {key!r} with the value {value!r} must not reach a compaction's job, which runs as "
                f"the metastore's user: only these may, each with a plain value: {', '.join(_named())}"
            )
    return None


def _is_harmless(key: str, value: str) -> bool:
    form = _HARMLESS.get(key.removeprefix(_PREFIX)) if key.startswith(_PREFIX) else None
    return form is not None and form.fullmatch(value) is not None


def _named() -> list[str]:
    return [f"{_PREFIX}{name}" for name in sorted(_HARMLESS)]
