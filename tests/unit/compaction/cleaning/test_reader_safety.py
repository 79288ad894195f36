"""Any interleaving of writers, readers, compactions and cleanings: an open reader reads the same rows at every step.

A table is a set of directory names here, and a row is the write id that inserted it. The machine does what the loops do,
with their rules; the check is plain set arithmetic on what had been committed when the reader began. Some readers say
what they read: this table, or another and later, unless it was cleaned meanwhile, this one too.
"""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule

from metastore.acid.names import BaseName, DeltaName
from metastore.acid.snapshots import RangeState, ValidTxnList, ValidWriteIdList
from metastore.acid.state import AcidState, ListedFile, NotEnoughHistoryError, acid_state
from metastore.compaction.cleaning.rules import (
    CleaningVerdict,
    DeclaredReading,
    OpenTxn,
    cleaning_txns,
    cleaning_write_ids,
    gate,
    is_hidden,
    may_come_to_read,
    next_in_line,
    results_of,
)
from metastore.compaction.initiating.rules import Action, decide
from metastore.compaction.queue.rules.requests import CompactionType
from tests.unit.compaction.queue.test_requests import NOW, request

KINDS = st.sampled_from([CompactionType.MINOR, CompactionType.MAJOR])
MOSTLY = st.sampled_from([True, True, True, False])


class Table(RuleBasedStateMachine):
    writers = Bundle("writers")
    readers = Bundle("readers")
    compactions = Bundle("compactions")

    def __init__(self):
        super().__init__()
        self.last_txn = 0
        self.open = set()
        self.aborted = set()
        self.write_ids = {}   # write id: transaction
        self.deletes = {}     # write id: the row that it deletes, or None
        self.directories = {}  # name: {row or ("deleted", row): write id of the event}
        self.watching = {}    # reader: (lists, rows)
        self.elsewhere = {}   # the same of readers that have named another table
        self.said = {}        # reader: Reading, where it said anything
        self.requests = []

    # ------------------------------------------------------------------------------------------------ snapshots
    def begin(self):
        self.last_txn += 1
        self.open.add(self.last_txn)
        return self.last_txn

    def lists(self, reader=None):
        mark = reader or self.last_txn
        exceptions = tuple(sorted(one for one in self.open | self.aborted if one <= mark and one != reader))
        txns = ValidTxnList(mark, min((one for one in exceptions if one in self.open), default=None), exceptions,
                            frozenset(self.aborted & set(exceptions)))
        known = {write_id: owner for write_id, owner in self.write_ids.items() if owner <= mark}
        invalid = tuple(sorted(write_id for write_id, owner in known.items() if owner in exceptions))
        gone = frozenset(write_id for write_id in invalid if known[write_id] in self.aborted)
        opened = min((write_id for write_id in invalid if write_id not in gone), default=None)
        highest = max(known, default=0)
        return ValidWriteIdList("d.t", highest, opened, invalid, gone), txns

    def listing(self):
        return [ListedFile(f"{name}/bucket_00000", 1) for name in self.directories]

    def rows(self, state: AcidState, write_ids):
        places = [*([state.base] if state.base else []), *state.deltas]
        events = [event for place in places for event, write_id in self.directories[place.path].items()
                  if write_ids.is_valid(write_id)]
        return {event for event in events if isinstance(event, int)} - {
            event[1] for event in events if not isinstance(event, int)}

    def state(self, write_ids, txns):
        return acid_state(self.listing(), write_ids, txns, lambda _: "")

    def expected(self, write_ids):
        valid = [write_id for write_id in self.write_ids if write_ids.is_valid(write_id)]
        return {one for one in valid if self.deletes[one] is None} - {self.deletes[one] for one in valid}

    # -------------------------------------------------------------------------------------------------- writers
    @rule(deletes=st.lists(st.booleans(), min_size=2, max_size=4), pick=st.integers(0, 20))
    def write_some(self, deletes, pick):
        for one in deletes:
            self.end_write(self.write(one, pick), commits=True)

    @rule(target=writers, deletes=st.booleans(), pick=st.integers(0, 20))
    def start_write(self, deletes, pick):
        return self.write(deletes, pick)

    def write(self, deletes, pick):
        write_ids, txns = self.lists()
        present = sorted(self.rows(self.state(write_ids, txns), write_ids))
        txn_id, write_id = self.begin(), len(self.write_ids) + 1
        self.write_ids[write_id] = txn_id
        self.deletes[write_id] = present[pick % len(present)] if deletes and present else None
        row = self.deletes[write_id]
        event = {write_id: write_id} if row is None else {("deleted", row): write_id}
        self.directories[str(DeltaName(write_id, write_id, 0, is_delete=row is not None))] = event
        return txn_id

    @rule(txn_id=consumes(writers), commits=MOSTLY)
    def end_writer(self, txn_id, commits):
        self.end_write(txn_id, commits)

    def end_write(self, txn_id, commits):
        self.open.discard(txn_id)
        if not commits:
            self.aborted.add(txn_id)

    # -------------------------------------------------------------------------------------------------- readers
    @rule(target=readers)
    def start_read(self):
        return self.read()

    def read(self):
        txn_id = self.begin()
        write_ids, txns = self.lists(txn_id)
        self.watching[txn_id] = (write_ids, txns, self.expected(write_ids))
        return txn_id

    @rule(target=readers)
    def start_read_that_says_so(self):
        txn_id = self.read()
        self.said[txn_id] = DeclaredReading.THIS
        return txn_id

    @rule(target=readers)
    def start_read_of_another_table(self):
        return self.read_elsewhere()

    def read_elsewhere(self):
        txn_id = self.read()
        self.said[txn_id] = DeclaredReading.OTHERS
        self.elsewhere[txn_id] = self.watching.pop(txn_id)
        return txn_id

    @rule(txn_id=readers)
    def name_this_table_too(self, txn_id):
        self.name(txn_id)

    @rule(target=readers, kind=KINDS)
    def name_what_was_compacted_and_cleaned(self, kind):
        """Others may hold the cleaning up; else it is refused."""
        reader = self.read_elsewhere()
        self.compact_at_once(kind)
        self.clean()
        self.name(reader)
        return reader

    def name(self, txn_id):
        if self.said.get(txn_id) is DeclaredReading.OTHERS and txn_id in self.open:
            self.said[txn_id] = DeclaredReading.THIS
            self.watching[txn_id] = self.elsewhere[txn_id]

    @rule(txn_id=consumes(readers))
    def end_read(self, txn_id):
        self.open.discard(txn_id)
        self.watching.pop(txn_id, None)

    # ---------------------------------------------------------------------------------------------- compactions
    def compact(self, kind):
        txn_id = self.begin()
        write_ids, txns = self.lists()
        compactor = write_ids.for_compactor()
        state = self.state(compactor, txns)
        if decide(kind, state, compactor, 1000, insert_only=False).action is not Action.RUN:
            self.open.discard(txn_id)
            self.aborted.add(txn_id)
            return (txn_id, None)
        mark = compactor.high_watermark
        if kind is CompactionType.MAJOR:
            rows = self.rows(state, compactor)
            self.directories[str(BaseName(mark, txn_id))] = {row: row for row in rows}
            return (txn_id, mark)
        low = min(delta.name.min_write_id for delta in state.deltas)
        for is_delete in (False, True):
            inputs = [delta for delta in state.deltas if delta.is_delete is is_delete]
            events = {event: write_id for delta in inputs for event, write_id in self.directories[delta.path].items()
                      if compactor.is_valid(write_id)}
            if inputs:
                self.directories[str(DeltaName(low, mark, None, txn_id, is_delete))] = events
        return (txn_id, mark)

    @rule(kind=KINDS)
    def compact_at_once(self, kind):
        self.finish(self.compact(kind), commits=True)

    @rule(target=readers, kind=KINDS)
    def read_during_a_compaction(self, kind):
        """Begin a reader during a compaction: it is the newest transaction when the compaction commits."""
        started = self.compact(kind)
        reader = self.read()
        self.finish(started, commits=True)
        return reader

    @rule(target=compactions, kind=KINDS)
    def start_compaction(self, kind):
        return self.compact(kind)

    @rule(started=consumes(compactions), commits=MOSTLY)
    def end_compaction(self, started, commits):
        self.finish(started, commits)

    def finish(self, started, commits):
        txn_id, mark = started
        if mark is None:
            return
        self.open.discard(txn_id)
        if not commits:
            self.aborted.add(txn_id)
            return
        self.requests.append(request("r", number=len(self.requests) + 1, highest_write_id=mark, txn_id=txn_id,
                                     next_txn_id=self.last_txn, committed_at=NOW))

    # ------------------------------------------------------------------------------------------------- cleaning
    def readers_of_old(self, one):
        return [OpenTxn(txn_id, "", "", self.said.get(txn_id, DeclaredReading.ANYTHING))
                for txn_id in sorted(self.open) if txn_id <= one.next_txn_id]

    @rule()
    def clean(self):
        for one in next_in_line(self.requests, NOW, NOW - NOW):
            readers = self.readers_of_old(one)
            if gate(one, NOW, NOW - NOW, "committed", readers, per_table=True).verdict is not CleaningVerdict.CLEAN:
                continue
            for txn in readers:  # as the Cleaner notes it
                self.said[txn.id] = DeclaredReading.NOT_THIS
            coming = [OpenTxn(txn_id, "", "", self.said.get(txn_id, DeclaredReading.ANYTHING)) for txn_id in sorted(self.open)]
            coming = [txn for txn in coming if may_come_to_read(txn, per_table=True)]
            hidden = [other.txn_id for other in self.requests if is_hidden(other, coming)]
            current, all_txns = self.lists()
            txns = cleaning_txns(all_txns, hidden, coming)
            for write_ids in (cleaning_write_ids(current, one.highest_write_id), current):
                try:
                    state = self.state(write_ids, txns)
                except NotEnoughHistoryError:
                    continue
                covered = state.obsolete if write_ids is not current else ()
                for path in dict.fromkeys([*covered, *state.aborted]):
                    del self.directories[path]
            self.requests.remove(one)

    @rule()
    def remove_void_results(self):
        for txn_id in self.aborted:
            for path in results_of(list(self.directories), txn_id):
                del self.directories[path]

    # -------------------------------------------------------------------------------------------------- promises
    @invariant()
    def open_readers_read_what_they_were_promised(self):
        for reader, (write_ids, txns, expected) in self.watching.items():
            assert self.rows(self.state(write_ids, txns), write_ids) == expected, reader

    @invariant()
    def a_new_reader_reads_what_is_committed(self):
        write_ids, txns = self.lists()
        assert self.rows(self.state(write_ids, txns), write_ids) == self.expected(write_ids)

    @invariant()
    def a_base_of_compaction_hides_nothing_open(self):
        write_ids, _ = self.lists()
        for name, events in self.directories.items():
            if name.startswith("base"):
                mark = int(name.split("_")[1])
                assert write_ids.aborted_range_state(1, mark) is not RangeState.ALL or not events


TestReaderSafety = Table.TestCase
TestReaderSafety.settings = settings(max_examples=100, stateful_step_count=40, deadline=None)
