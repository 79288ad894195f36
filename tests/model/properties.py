"""What must hold of snapshots, whatever the model says (TXN-25), judged by what clients saw.

(a) What was committed before a transaction began is valid in every snapshot that it takes. (b) What a snapshot calls
valid was committed before it was taken. (c) Of two that changed the same thing, each under the check, one began after the
other was committed. (d) A reader's list hides a write id exactly when its snapshot hides the owner.
"""

import re
from itertools import combinations


class Witness:
    """Listens to one story. Everything is by number."""

    def __init__(self, story):
        self.story, self.world = story, story.world
        self.open, self.committed, self.hidden, self.unchecked = set(), set(), set(), set()
        self.before, self.owners, self.changes = {}, {}, set()
        self.turn = 0

    def note(self, line, answers):
        """Note a command that was done, and its answers."""
        command, *words = line.split()
        for answer in answers:
            name, _, said = answer.partition(": ")
            txn_id = self.story.txns.get(name)
            if command == "open" and said == "open":
                self.open.add(txn_id)
                self.before[txn_id] = set(self.committed)
                self.hidden |= {txn_id} if "read_only" in words else set()
            elif said == "committed" and txn_id in self.open:
                self.committed.add(txn_id)
                self.unchecked |= {txn_id} if "excl=true" in words else set()
        if command in {"write", "rewrite"}:
            self._note_owners(words[1], [(words[0], found[1]) for found in [re.search(r"write id (\d+) of", answers[0])] if found])
        elif command == "writes":
            self._note_owners(words[0], re.findall(r"(\S+) (\d+)", answers[0].partition(": ")[2]))

    def complaints(self):
        """Return a sentence for each property that does not hold now."""
        self.open = {one.id for one in self.world.get_open_txns_info().open_txns
                     if one.state == self.world.types.TxnState.OPEN}
        self.changes |= {(place, txn_id, commit_id) for txn_id, place, commit_id, _ in self.world.writes()
                         if txn_id not in self.unchecked}
        self.writers = {txn_id for txn_id, *_ in self.world.components()}
        return [*self._lost_updates(), *self._wrong_snapshots(), *self._wrong_lists()]

    def _note_owners(self, table, pairs):
        for owner, write_id in pairs:
            known = self.owners.setdefault(table.lower(), {})
            txn_id = self.story.txns[owner]
            self.owners[table.lower()] = {
                **{one: other for one, other in known.items() if other != txn_id}, int(write_id): txn_id}

    def _lost_updates(self):
        return [f"(c) {self._name(first)} and {self._name(second)} overlap and both changed {place}"
                for (place, first, first_end), (other_place, second, second_end) in combinations(sorted(self.changes), 2)
                if place == other_place and first != second and first <= second_end and second <= first_end]

    def _wrong_snapshots(self):
        """One reader at each step, in turn; 0 is somebody without a transaction, who comes after all commits."""
        readers = [0, *sorted(self.open & set(self.before))]
        self.turn += 1
        reader = readers[self.turn % len(readers)]
        seen = self.story.take(reader)
        yield from (f"(a) {self._name(reader)} began after {self._name(other)} was committed, and does not see it"
                    for other in self.before.get(reader, self.committed) if seen.state(other) != "valid")
        yield from (f"(b) {self._name(reader)} sees {self._name(other)}, which is not committed"
                    for other in (self.open | self.writers) - self.committed - self.hidden - {reader}
                    if seen.state(other) == "valid")

    def _wrong_lists(self):
        readers = [name for name in self.story.snapshots if self.story.txns[name] in self.open]
        if not readers or not self.owners:
            return
        reader = readers[self.turn % len(readers)]
        seen = self.story.snapshots[reader]
        for answer in self.story._lists({"validTxnList": str(seen)}, sorted(self.owners)):
            for write_id, owner in self.owners[answer.fullTableName].items():
                hides = write_id in answer.invalidWriteIds or write_id > answer.writeIdHighWaterMark
                what = f"write id {write_id} of {answer.fullTableName}"
                if hides and seen.state(owner) == "valid":
                    yield f"(d) {reader} sees {self._name(owner)}, and not its {what}"
                if not hides and seen.state(owner) != "valid" and owner in self.open | self.writers | self.committed:
                    yield f"(d) {reader} does not see {self._name(owner)}, but sees its {what}"

    def _name(self, txn_id):
        return self.story.txn_name(txn_id) if txn_id else "a reader without a transaction"
