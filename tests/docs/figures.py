"""The table of docs/explanation/performance.md, made of the figures in benchmarks/results.

Each file there has the rows of one group: a list of objects with ``name``, ``command``, ``peer`` ("" without one),
``values``, ``unit``, ``measured`` (a date) and ``conditions``, and often with a ``goal``. Of ``values`` are known: ``ours``,
``peer`` and ``ratio``, each a number or a range of two. A ratio is ours divided by the peer's. It stands in a row where a
benchmark does not divide the two values, because it compares neighbouring runs or has no values. A goal is for ``ours`` or
for the ``ratio``: at least so many for rates, at most so many for all other units.
"""

import json
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "explanation" / "performance.md"
RESULTS = ROOT / "benchmarks" / "results"
GROUPS = {
    "calls": "Calls",
    "locks": "One contended lock",
    "large-answers": "Large answers and requests, 1 client",
    "start": "Start and memory",
    "tls": "TLS",
    "compaction": "Compaction",
    "acid-reads": "ACID tables in Spark, reads",
    "acid-writes": "ACID tables in Spark, writes",
    "lakes": "Beside Delta Lake and Iceberg",
    "streaming": "Streaming without Spark",
}
"""The groups in the order of the page: the names of their files, and their titles."""
BEGIN, END = "<!-- table: written by `make docs` -->\n", "<!-- table: end -->\n"

_RATES = ("/s", "rows/s")
_KEYS = {"name", "command", "peer", "values", "unit", "measured", "conditions"}
_HEAD = "| Measured | Ours | Peer or limit | Ours / peer | Goal | Command | Date |\n|---|--:|---|--:|---|---|---|\n"
_PYTHON = "python -m benchmarks."

Value = tuple[float, float]


class MalformedFigureError(ValueError):
    """A row of benchmarks/results that cannot be shown."""


class Figure(NamedTuple):
    """One row of the table. A value is a range, of which both ends are often the same."""

    name: str
    command: str
    peer: str
    values: dict[str, Value]
    unit: str
    goal: dict[str, float]
    measured: date
    conditions: str

    @property
    def ratio(self) -> Value | None:
        """Ours divided by the peer's, as the row says or from its values."""
        if "ratio" in self.values:
            return self.values["ratio"]
        if "peer" not in self.values:
            return None
        (least, most), (peer_least, peer_most) = self.values["ours"], self.values["peer"]
        return least / peer_most, most / peer_least

    @property
    def verdict(self) -> str:
        """The goal and whether it is met: "partly" if one end of the range meets it."""
        if not self.goal:
            return ""
        ((subject, goal),) = self.goal.items()
        reached = self.values["ours"] if subject == "ours" else self.ratio
        assert reached is not None
        is_rate = self.unit in _RATES
        met = {value >= goal if is_rate else value <= goal for value in reached}
        text = _with_unit(_number(goal), self.unit) if subject == "ours" else f"{goal:g}"
        return f"{'≥' if is_rate else '≤'}{text}: {'partly' if len(met) > 1 else 'yes' if met == {True} else 'no'}"


def figure(row: dict[str, Any]) -> Figure:
    """Read one row. Raises: MalformedFigureError."""
    name = row.get("name", row)
    if missing := _KEYS - row.keys():
        raise MalformedFigureError(f"{name}: add {', '.join(sorted(missing))}")
    if (
        unknown := (row.keys() - _KEYS - {"goal"})
        | (row["values"].keys() - {"ours", "peer", "ratio"})
        | (row.get("goal", {}).keys() - {"ours", "ratio"})
    ):
        raise MalformedFigureError(f"{name}: {', '.join(sorted(unknown))} is not known")
    values = {
        key: (value[0], value[1]) if isinstance(value, list) else (value, value) for key, value in row["values"].items()
    }
    if not {"ours", "ratio"} & values.keys() or ("peer" in values and "ours" not in values):
        raise MalformedFigureError(f"{name}: its values lack ours")
    if bool(row["peer"]) != bool({"peer", "ratio"} & values.keys()):
        raise MalformedFigureError(f"{name}: name the peer if, and only if, there is a value or a ratio of one")
    try:
        measured = date.fromisoformat(row["measured"])
    except ValueError:
        raise MalformedFigureError(f"{name}: {row['measured']!r} is no date; write YYYY-MM-DD") from None
    found = Figure(
        row["name"], row["command"], row["peer"], values, row["unit"], row.get("goal", {}), measured, row["conditions"]
    )
    if ("ratio" in found.goal and found.ratio is None) or ("ours" in found.goal and "ours" not in values):
        raise MalformedFigureError(f"{name}: its goal is for a value that it lacks")
    return found


def figures() -> dict[str, list[Figure]]:
    """Return the rows by the title of their group. Raises: MalformedFigureError."""
    if unlike := GROUPS.keys() ^ {path.stem for path in RESULTS.glob("*.json")}:
        raise MalformedFigureError(
            f"benchmarks/results and GROUPS in tests/docs/figures.py differ: {', '.join(sorted(unlike))}"
        )
    return {
        title: [figure(row) for row in json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))]
        for name, title in GROUPS.items()
    }


def table() -> Iterator[str]:
    """Return the table. A command that is the same as in the row above is not repeated."""
    yield _HEAD
    above = ""
    for title, rows in figures().items():
        yield f"| **{title}** |\n"
        for one in rows:
            command = "same" if one.command == above else f"`{one.command.removeprefix(_PYTHON)}`"
            above = one.command
            yield (
                f"| {one.name} | {_ours(one)} | {', '.join(filter(None, (_range(one.values.get('peer'), _number), one.peer)))} | "
                f"{_range(one.ratio, _share)} | {one.verdict} | {command} | {one.measured} |\n"
            )


def page() -> Iterator[str]:
    """Return the page with the table between its markers. Raises: MalformedFigureError."""
    before, begin, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise MalformedFigureError(
            f"{PAGE.name} lacks the lines between which the table stands: {BEGIN.strip()} and {END.strip()}"
        )
    yield from (before, BEGIN, "\n", *table(), "\n", END, after)


def _ours(one: Figure) -> str:
    text = _range(one.values.get("ours"), _number)
    return _with_unit(text, one.unit) if text else ""


def _range(value: Value | None, show: Callable[[float], str]) -> str:
    return " to ".join(dict.fromkeys(map(show, value))) if value else ""


def _number(value: float) -> str:
    return f"{value:,}"


def _share(value: float) -> str:
    """Return a ratio with as many digits as its size needs: 0.016, 0.101, 0.89, 5.40, 211."""
    if value < 0.1:
        return f"{value:.2g}"
    return f"{value:.3g}" if value < 0.2 or value >= 10 else f"{value:.2f}"


def _with_unit(text: str, unit: str) -> str:
    return text + unit if unit == "/s" else f"{text} {unit}"
