"""Who must have come before whom: the dependency graph of the committed transactions, and its forbidden cycles.

Every element is an object with two versions: absent, and there. Updates of a key are in the order of their write ids.
So edges are known, none is guessed: ww from one update of a key to the next; wr from a writer to who saw its element; rw
from who read the key without seeing the element to its writer (Adya's anomalies, found as Elle finds them). Snapshot
isolation forbids cycles of ww (G0), of ww and wr (G1c), and those with exactly one rw (G-single). Two or more rw are
write skew, which it allows.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import pairwise
from typing import NamedTuple

from tests.robustness.checker.history import Anomaly, Append, History


class Edge(NamedTuple):
    """``before`` must be before ``after``, and why."""

    before: int
    after: int
    kind: str
    why: str

    def __str__(self) -> str:
        return f"T{self.before} {self.why} T{self.after} ({self.kind})"


Graph = Mapping[int, Mapping[int, Edge]]


def cycles(history: History) -> Iterator[Anomaly]:
    """G0, G1c, lost updates and other G-single, with one witness per strongly connected component or pair."""
    ww, wr, rw = edges(history)
    for kind, graph in (("G0", as_graph(ww)), ("G1c", as_graph([*ww, *wr]))):
        for members in components(graph):
            if len(members) > 1:
                cycle = cycle_within(graph, members)
                if kind == "G0" or any(edge.kind == "wr" for edge in cycle):
                    yield Anomaly(kind, story(cycle))
    base = as_graph([*ww, *wr])
    reach = reachable(base)
    changed: dict[int, set[str]] = {}
    for append in history.appends:
        if append.changes:
            changed.setdefault(append.txn, set()).add(append.key)
    told: set[frozenset[int]] = set()
    for edge in rw:
        members = frozenset((edge.before, edge.after))
        if members in told or edge.before not in reach.get(edge.after, ()):
            continue
        told.add(members)
        both = changed.get(edge.before, set()) & changed.get(edge.after, set())
        yield Anomaly("lost update" if both else "G-single", story([edge, *path(base, edge.after, edge.before)]))


def edges(history: History) -> tuple[list[Edge], list[Edge], list[Edge]]:
    """All ww, wr and rw edges between committed transactions."""
    by_key: dict[str, list[Append]] = {}
    for append in history.appends:
        if append.txn in history.committed:
            by_key.setdefault(append.key, []).append(append)
    ww = []
    for key, written in by_key.items():
        updates = sorted((append for append in written if append.changes), key=lambda append: append.write_id)
        ww += [Edge(one.txn, other.txn, "ww", f"wrote {key}@{one.write_id}, before {key}@{other.write_id} of")
               for one, other in pairwise(updates) if one.txn != other.txn]
    wr, rw = [], []
    for read in history.reads:
        seen = set(read.elements)
        for append in by_key.get(read.key, ()) if read.txn in history.committed else ():
            place = f"{append.element} in {append.key}@{append.write_id}"
            if append.txn == read.txn:
                continue
            if append.element in seen:
                wr.append(Edge(append.txn, read.txn, "wr", f"wrote {place}, which was seen by"))
            else:
                rw.append(Edge(read.txn, append.txn, "rw", f"did not see {place} of"))
    return ww, wr, rw


def as_graph(all_edges: Iterable[Edge]) -> dict[int, dict[int, Edge]]:
    """One edge for each pair."""
    graph: dict[int, dict[int, Edge]] = {}
    for edge in all_edges:
        graph.setdefault(edge.before, {}).setdefault(edge.after, edge)
    return graph


def components(graph: Graph) -> Iterator[set[int]]:
    """Yield the strongly connected components, each after all that can be reached from it (Tarjan, without recursion)."""
    index: dict[int, int] = {}
    low: dict[int, int] = {}
    stack: list[int] = []
    on_stack: set[int] = set()
    for root in graph:
        work = [] if root in index else [(root, iter(graph[root]))]
        while work:
            node, afters = work[-1]
            if node not in index:
                index[node] = low[node] = len(index)
                stack.append(node)
                on_stack.add(node)
            after = next((one for one in afters if one not in index or one in on_stack), None)
            if after is None:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    members = set(stack[stack.index(node):])
                    del stack[-len(members):]
                    on_stack -= members
                    yield members
            elif after in index:
                low[node] = min(low[node], index[after])
            else:
                work.append((after, iter(graph.get(after, {}))))


def reachable(graph: Graph) -> dict[int, set[int]]:
    """By node: all that it must be before, itself included where it is on a cycle."""
    reach: dict[int, set[int]] = {}
    for members in components(graph):
        found: set[int] = set(members) if len(members) > 1 else set()
        for after in {after for node in members for after in graph.get(node, {})} - members:
            found |= {after} | reach[after]
        reach.update(dict.fromkeys(members, found))
    return reach


def path(graph: Graph, start: int, goal: int) -> list[Edge]:
    """Return a shortest path, which is known to exist, by breadth-first search."""
    came: dict[int, Edge] = {}
    front = [start]
    while goal not in came:
        edges_out = [edge for node in front for edge in graph.get(node, {}).values()]
        fresh = {edge.after: edge for edge in reversed(edges_out) if edge.after not in came and edge.after != start}
        came.update(fresh)
        front = list(fresh)
    way = [came[goal]]
    while way[0].before != start:
        way.insert(0, came[way[0].before])
    return way


def cycle_within(graph: Graph, members: Collection[int]) -> list[Edge]:
    """Return a cycle inside a strongly connected component."""
    inside = {node: {after: edge for after, edge in graph.get(node, {}).items() if after in members} for node in members}
    first = next(iter(inside[min(members)].values()))
    return [first, *path(inside, first.after, first.before)]


def story(cycle: Iterable[Edge]) -> str:
    """Describe the cycle in words."""
    return "; ".join(str(edge) for edge in cycle)
