"""Specification and result of a compaction job: the JSON between the Worker and the Spark job.

Rule: the Worker decides (snapshot, transaction, kind, directory), the job only carries it out: it selects the inputs
with ``acid_state(listing, write_ids.for_compactor(), txns)``, writes directories that end in ``_v<txn_id>`` and are
invisible until that transaction commits, and changes nothing else. It must not open, commit or abort the transaction.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Self

IN_UTC = "-Duser.timezone=UTC"
"""An option for the JVMs of a job: elsewhere a timestamp in the hour that daylight saving skips would be moved."""


@dataclass(frozen=True)
class CompactionJobSpec:
    """A job. ``kind``: ``major``, ``minor`` or ``rebalance``; ``partition``: its name, "" for an unpartitioned table.

    ``write_ids`` and ``txns`` are the texts of ``metastore.acid.snapshots``; the compaction's own transaction counts as
    open. A major job writes ``base_<highest_write_id>_v<txn_id>``; a minor one writes a ``delta_`` and a
    ``delete_delta_`` ``<min>_<highest_write_id>_v<txn_id>``, where min is the smallest write id of its inputs.
    ``statistics``: the columns for which a major job reports statistics. ``max_num_delta``: how many files of a bucket
    the job may have open at a time; with more it sorts the rows instead.
    ``spark_conf``: settings of the session that the job makes, ``spark.master`` among them. ``hadoop_conf``: keys of
    object stores, for Hadoop and for the job's own files. ``result_path``: a local
    file for a ``CompactionJobResult``; "" if it is not needed.
    """

    compaction_id: int
    attempt: int
    kind: str
    catalog: str
    database: str
    table: str
    partition: str
    location: str
    write_ids: str
    txns: str
    txn_id: int
    highest_write_id: int
    metastore_uri: str = ""
    properties: dict[str, str] = field(default_factory=dict)
    number_of_buckets: int | None = None
    order_by: str | None = None
    statistics: tuple[str, ...] = ()
    max_num_delta: int = 500
    spark_conf: dict[str, str] = field(default_factory=dict)
    result_path: str = ""
    hadoop_conf: dict[str, str] = field(default_factory=dict, repr=False)

    @property
    def progress_path(self) -> str:
        """The file in which the job reports its progress, beside its result; "" if it is not needed."""
        return f"{self.result_path}.progress" if self.result_path else ""

    def to_json(self) -> str:
        """Return the text that ``from_json`` reads."""
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read a specification; an unknown or missing field is a TypeError."""
        fields = json.loads(text)
        return cls(**{**fields, "statistics": tuple(fields.get("statistics", ()))})


@dataclass(frozen=True)
class JobProgress:
    """The worker of a job, and the job's progress.

    ``stages``: the known stages of Spark; ``rows``: their input so far; ``rows_expected``: their input when all is
    done, 0: not known yet.
    """

    application_id: str = ""
    tracking_url: str = ""
    stages_done: int = 0
    stages: int = 0
    rows: int = 0
    rows_expected: int = 0

    @property
    def percent(self) -> int | None:
        """The percentage of finished work, by rows: the steps behind the last row take their time too."""
        return min(99, 100 * self.rows // self.rows_expected) if self.rows_expected else None

    def __str__(self) -> str:
        """Format the progress for people."""
        done = "" if self.percent is None else f"{self.percent} %, "
        where = f", {self.tracking_url}" if self.tracking_url else ""
        return f"{done}{self.stages_done} of {self.stages} stages done, {self.rows} rows taken in{where}"

    def to_json(self) -> str:
        """Return the text that ``from_json`` reads."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read a report; an unknown field is a TypeError."""
        return cls(**json.loads(text))


@dataclass(frozen=True)
class CompactionJobResult:
    """The written directories (names below the location), and the numbers of rows that went in and came out.

    ``rows_deleted``: rows that delete events name, which a major compaction leaves out. ``error``: the reason for no
    work; ``differences``: those between its outputs and its inputs' rows. ``statistics``: of columns, as the catalog
    has them.
    """

    directories: tuple[str, ...] = ()
    rows_in: int = 0
    rows_out: int = 0
    application_id: str = ""
    error: str = ""
    differences: tuple[str, ...] = ()
    rows_deleted: int = 0
    statistics: dict[str, dict[str, Any]] = field(default_factory=dict)

    def to_json(self) -> str:
        """Return the text that ``from_json`` reads."""
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read a result; an unknown field is a TypeError."""
        fields = json.loads(text)
        lists = {name: tuple(fields.get(name, ())) for name in ("directories", "differences")}
        return cls(**{**fields, **lists})


_FRAME = re.compile(r"at [\w.$/<>]+\(|\.\.\. \d+ more|File \".*\", line \d+|\^+$|~*\^+~*$|Driver stacktrace:")
_ERROR = re.compile(r"(Caused by: |: )?([\w.$]+(Exception|Error|Interrupt|Exit)\b.*)")


def reason(error: BaseException) -> str:
    """Return an error in one or two lines: its own text, and the cause at the bottom of a stack trace of Java's."""
    lines = [line.strip() for line in f"{type(error).__name__}: {error}".splitlines()]
    first, cause = lines[0], telling_line(lines)
    return first if cause in ("", first) else f"{first} {cause}"


def telling_line(lines: Sequence[str]) -> str:
    """Return the most telling line of an output with stack traces: the last cause, else error, else line."""
    said = [line for line in lines if line and not _FRAME.match(line)]
    errors = [match for match in map(_ERROR.match, said) if match]
    causes = [error for error in errors if error[1]]
    return next((cause[2] for cause in reversed(causes or errors)), said[-1] if said else "")
