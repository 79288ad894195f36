"""Random stories: whatever happens in whatever order, a world answers as the model does, and its snapshots hold.

Every step is a command of a script. A story that fails is made short and left as a script: it is in the message and in
the file ``FOUND``, ready to be put below tests/scripts.
"""

from pathlib import Path

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, rule, run_state_machine_as_test

from tests.model.telling import MismatchError, Telling, failure, script, shortened
from tests.support.model import Model

FOUND = Path(".hypothesis") / "found" / "story"

tables = st.sampled_from(["db.a", "DB.b"])
places = st.sampled_from(["db", "db", "db.a", "db.a", "db.b", "db.a/p=1", "db.a/P=2", "db.b/p=1", "other.a"])
kinds = st.sampled_from(["default", "default", "default", "default", "read_only", "compaction", "soft_delete",
                         "mater_view_rebuild", "rebalance_compaction"])
operations = st.sampled_from(["insert", "update", "update", "delete", "select", "no_txn", "unset"])
changes = st.sampled_from(["insert", "update", "update", "delete"])
lock_types = st.sampled_from(["shared_read", "shared_write", "excl_write", "exclusive"])
components = st.lists(st.builds(lambda kind, place, operation: f"{kind} {place} {operation}",
                                lock_types, places, operations), min_size=1, max_size=3)
lock_flags = st.sets(st.sampled_from(["dynamic", "plain", "zero_wait", "ctas"]), max_size=2)
writes = st.tuples(changes, lock_types, st.lists(st.sampled_from(["db.a", "db.a/p=1", "db.a/p=1", "DB.b"]), min_size=1,
                                                 max_size=2, unique=True))
partitions = st.lists(st.sampled_from(["p=1", "P=2", "p=a:b", "p=a%3Ab"]), max_size=3)
owners = st.sampled_from(["", "user=ann host=h1 agent=hive_1 ", "user=bob agent=hive_2 "])
agents = st.sampled_from(["", "user=ann ", "user=bob "])
sources = st.lists(st.integers(1, 4), min_size=1, max_size=3, unique=True)


def tell_stories(world, ideal=Model, *, found=FOUND, **limits):
    """Compare ``world()``, a new and empty one at each call, with the model in as many stories as ``limits`` say.

    Raises: AssertionError with the shortest story that fails.
    """
    stories = machine(world, ideal)
    try:
        # Shortening commands is far quicker than shortening the draws that they came from.
        run_state_machine_as_test(stories, settings=settings(
            stateful_step_count=30, deadline=None, phases=[Phase.generate], report_multiple_bugs=False,
            suppress_health_check=list(HealthCheck), **limits))
    except MismatchError:
        lines = shortened(stories.failed, lambda lines: failure(lines, ideal(), world()))
        found.parent.mkdir(parents=True, exist_ok=True)
        found.write_text(script(lines), encoding="utf-8")
        raise AssertionError(
            f"{failure(lines, ideal(), world())}\n\nThe story as it should be:\n\n{script(lines)}") from None


def machine(world, ideal):
    """Return the machine that tells stories to two worlds."""

    class Stories(RuleBasedStateMachine):
        failed = ()
        txns, locks = Bundle("txns"), Bundle("locks")

        def __init__(self):
            super().__init__()
            self.lines = []
            self.telling = Telling(ideal(), world())
            self.ideal, self.real = self.telling.ideal, self.telling.real

        def tell(self, line):
            self.lines.append(line)
            try:
                self.telling.tell(line)
            except MismatchError:
                type(self).failed = self.lines
                raise

        def named(self, kind):
            return f"{kind}{len(self.real.txns if kind == 't' else self.real.requests) + 1}"

        def has_written(self, name, operation, kind, places):
            """Write as usual: a write id for each table and one lock request."""
            for table in dict.fromkeys(place.partition("/")[0].lower() for place in places):
                self.tell(f"write {name} {table}")
            wanted = ", ".join(f"{kind} {place}" for place in places)
            self.tell(f"lock {self.named('l')} txn={name} op={operation} {wanted}")

        @initialize(target=txns)
        def begins(self):
            self.tell("open t1")
            return "t1"

        @rule(target=txns, kind=kinds, owner=owners)
        def opens(self, kind, owner):
            name = self.named("t")
            self.tell(f"open {name} {owner}{kind if kind != 'default' else ''}".strip())
            return name

        @rule(target=txns, written=writes)
        def opens_and_writes(self, written):
            name = self.named("t")
            self.tell(f"open {name}")
            self.has_written(name, *written)
            return name

        @rule(txn=txns, written=writes)
        def writes_more(self, txn, written):
            self.has_written(txn, *written)

        @rule(txn=txns, excl=st.sampled_from(["", "", "", " excl=true", " excl=false"]))
        def commits(self, txn, excl):
            self.tell(f"commit {txn}{excl}")

        @rule(txn=consumes(txns))
        def commits_for_good(self, txn):
            self.tell(f"commit {txn}")

        @rule(txn=txns, code=st.sampled_from(["", " code=50005", " code=1"]), other=txns, both=st.booleans())
        def aborts(self, txn, code, other, both):
            self.tell(f"abort_all {txn} {other} unknown{code}" if both else f"abort {txn}{code}")
            if not both and self.ideal.txns[txn] in self.ideal.world.txns:
                self.tell(f"reason {txn}")

        @rule(txn=txns, other=txns, alone=st.booleans())
        def heartbeats(self, txn, other, alone):
            low, high = sorted([txn, other], key=lambda name: self.real.txns[name])
            self.tell("advance 1s")
            self.tell(f"heartbeat {txn}" if alone else f"heartbeat_range {low} {high}")

        @rule(target=locks, txn=txns | st.none(), flags=lock_flags, wanted=components, agent=agents)
        def locks_something(self, txn, flags, wanted, agent):
            name = self.named("l")
            owner = f"txn={txn} " if txn else ""
            self.tell(f"lock {name} {owner}{agent}{' '.join([*sorted(flags), ''])}{', '.join(wanted)}")
            return name

        @rule(target=locks, txn=txns | st.none(), kind=lock_types, place=places)
        def locks_one_thing(self, txn, kind, place):
            name = self.named("l")
            self.tell(f"lock {name} {f'txn={txn} ' if txn else ''}{kind} {place}")
            return name

        @rule(lock=locks, what=st.sampled_from(["check", "check", "unlock", "heartbeat"]))
        def asks_again(self, lock, what):
            self.tell("advance 1s")
            self.tell(f"{what} {lock}")

        @rule(txn=txns, other=txns, table=tables, what=st.sampled_from(["write", "rewrite", "writes"]))
        def gets_write_ids(self, txn, other, table, what):
            self.tell(f"writes {table} {txn} {other}" if what == "writes" else f"{what} {txn} {table}")

        @rule(txn=txns, table=tables, names=partitions, operation=changes, said=st.booleans())
        def reports_partitions(self, txn, table, names, operation, said):
            self.tell(f"partitions {txn} {table} {f'op={operation} ' if said else ''}{' '.join(names)}".strip())

        @rule(txn=txns, what=st.sampled_from(["snapshot", "latest_conflict"]))
        def looks(self, txn, what):
            self.tell(f"{what} {txn}")

        @rule(reader=txns | st.sampled_from(["now", "everything", "write_id=1", "write_id=2"]))
        def reads(self, reader):
            self.tell(f"valid {reader} db.a DB.b hive.db.r db.none")

        @rule(txn=txns, view=st.sampled_from(["db.view", "db.other"]), keeps=st.booleans())
        def rebuilds(self, txn, view, keeps):
            self.tell(f"{'rebuild_heartbeat' if keeps else 'rebuild'} {txn} {view}")

        @rule(what=st.sampled_from(["open", "commit", "abort", "write"]), replayed=sources, write_id=st.integers(1, 9))
        def replays(self, what, replayed, write_id):
            """Replay a call; an open never mixes known and new sources, and write ids never go backwards: no rule says what either means."""
            known = [source for source in replayed if ("p", source) in self.ideal.world.replicated]
            highest = max(self.ideal.world.owned("db", "r"), default=0)
            if what == "open":
                self.tell(f"open_replayed p {known[0] if known else ' '.join(map(str, replayed))}")
            elif what == "commit":
                self.tell(f"commit_replayed p {replayed[0]} db.r/p=1:{write_id} db.r:{write_id}")
            elif what == "abort":
                self.tell(f"abort_replayed p {replayed[0]}")
            elif write_id > highest:
                pairs = " ".join(f"{source}:{number}" for number, source in enumerate(sorted(replayed), write_id))
                self.tell(f"writes_replayed p db.r {pairs}")

        @rule(seconds=st.sampled_from([0, 100, 299, 301, 3601]), then=st.sampled_from(["reap", "reap", "purge", ""]))
        def time_passes(self, seconds, then):
            for line in (f"advance {seconds}s" if seconds else "", then):
                if line:
                    self.tell(line)

    return Stories
