"""Commands about write ids, what is written and who sees it."""

import json
from typing import NamedTuple

from tests.support.scripts.names import flags, options, split

NOBODY = 2**63 - 1


class Seen(NamedTuple):
    """What a client makes of get_open_txns for its own transaction (TxnCommonUtils.createValidReadTxnList)."""

    mark: int
    opened: tuple[int, ...]
    aborted: tuple[int, ...]

    def state(self, txn_id):
        if txn_id in self.aborted:
            return "aborted"
        return "open" if txn_id in self.opened or txn_id > self.mark else "valid"

    def __str__(self):
        opened, aborted = (",".join(map(str, part)) for part in (self.opened, self.aborted))
        return f"{self.mark}:{min(self.opened, default=NOBODY)}:{opened}:{aborted}"


class WriteIdWords:
    """Commands about write ids, what is written and who sees it."""

    def take(self, txn_id):
        """Take the snapshot of a transaction (0: of nobody), now."""
        answer = self.world.get_open_txns()
        flags = int.from_bytes(answer.abortedBits, "little")
        others = [(other, flags >> position & 1) for position, other in enumerate(answer.open_txns)
                  if not txn_id or other < txn_id]
        mark = min(txn_id, answer.txn_high_water_mark) if txn_id else answer.txn_high_water_mark
        return Seen(mark, tuple(other for other, aborted in others if not aborted),
                    tuple(other for other, aborted in others if aborted))

    def _snapshot(self, names):
        return [answer for name in names for answer in self._taken(name)]

    def _taken(self, name):
        seen = self.snapshots[name] = self.take(self.txns[name])
        return [f"{name} sees: " + ", ".join(f"{other} {seen.state(txn_id)}" for other, txn_id in self.txns.items())]

    def _write(self, words):
        name, table = words
        return self.said(name, lambda: f"write id {self._allocated(table, [name])[0].writeId} of {table}")

    def _rewrite(self, words):
        name, table = words
        return self.said(
            name, lambda: f"write id {self._allocated(table, [name], reallocate=True)[0].writeId} of {table}")

    def _writes(self, words):
        table, *names = words
        return self.said(table, lambda: self._pairs(self._allocated(table, list(self.expanded(names)))))

    def _writes_replayed(self, words):
        policy, table, *pairs = words
        db, name, _ = split(table)
        sent = [self.types.TxnToWriteId(*map(int, pair.split(":"))) for pair in pairs]
        return self.said(table, lambda: self._pairs(self._noted(table, self.world.allocate_table_write_ids(
            self.types.AllocateTableWriteIdsRequest(db, name, replPolicy=policy, srcTxnToWriteIdList=sent)))))

    def _allocated(self, table, names, *, reallocate=False):
        db, name, _ = split(table)
        return self._noted(table, self.world.allocate_table_write_ids(self.types.AllocateTableWriteIdsRequest(
            db, name, [self.id(txn_name) for txn_name in names], reallocate=reallocate)))

    def _noted(self, table, answer):
        highest = max((pair.writeId for pair in answer.txnToWriteIds), default=0)
        self.highest[table] = max(self.highest.get(table, 0), highest)
        return answer.txnToWriteIds

    def _pairs(self, pairs):
        return ", ".join(f"{self.txn_name(pair.txnId)} {pair.writeId}" for pair in pairs) or "none"

    def _max(self, words):
        [table] = words
        db, name, _ = split(table)
        answer = self.world.get_max_allocated_table_write_id(self.types.MaxAllocatedTableWriteIdRequest(db, name))
        return [f"{table}: {answer.maxWriteId}"]

    def _seed(self, words):
        table, number = words
        db, name, _ = split(table)
        return self.said(table, lambda: self.world.seed_write_id(self.types.SeedTableWriteIdsRequest(
            db, name, int(number))) or f"begins behind {number}")

    def _replicate(self, words):
        table, text, *partitions = words
        db, name, _ = split(table)
        return self.said(table, lambda: self.world.repl_tbl_writeid_state(self.types.ReplTblWriteIdStateRequest(
            text, "u", "h", db, name, partitions or None)) or "taken over")

    def _reads(self, words):
        name, table = words
        [answer] = self._lists(self._as_of(name), [table])
        valid = [write_id for write_id in range(1, self.highest.get(table, 0) + 1)
                 if write_id <= answer.writeIdHighWaterMark and write_id not in answer.invalidWriteIds]
        return [f"{name} reads {table}: {' '.join(map(str, valid)) or 'none'} of {self.highest.get(table, 0)}"]

    def _valid(self, words):
        words, values = options(words, "write_id")
        reader = f"write id {values['write_id']}" if values else words.pop(0)
        if values:
            fields = {"writeId": int(values["write_id"])}
        else:
            fields = {"now": {}, "everything": {"validTxnList": ""}}.get(reader) or (
                {} if reader == "now" else {"validTxnList": ""} if reader == "everything" else self._as_of(reader))

        def listed():
            return "".join(f"\n  {self._list(write_ids)}" for write_ids in self._lists(fields, words))
        return [line for answer in self.said(f"for {reader}", listed) for line in answer.replace(": \n", ":\n").split("\n")]

    def _as_of(self, name):
        if name not in self.snapshots:
            self.snapshots[name] = self.take(self.txns[name])
        return {"validTxnList": str(self.snapshots[name])}

    def _lists(self, reader, tables):
        return self.world.get_valid_write_ids(
            self.types.GetValidWriteIdsRequest(fullTableNames=tables, **reader)).tblValidWriteIds

    @staticmethod
    def _list(write_ids):
        bits = int.from_bytes(write_ids.abortedBits, "little")
        aborted = {write_id for position, write_id in enumerate(write_ids.invalidWriteIds) if bits >> position & 1}
        opened = [write_id for write_id in write_ids.invalidWriteIds if write_id not in aborted]
        return (f"{write_ids.fullTableName} up to {write_ids.writeIdHighWaterMark}: open {_numbers(opened)}, "
                f"aborted {_numbers(aborted)}, oldest open {write_ids.minOpenWriteId or 'none'}")

    def _view(self, words):
        """Remember what a materialized view that is made now is made of."""
        (name, *tables), wanted = flags(words, "as_json")
        lists = self._lists({}, tables) if tables else []
        text = "$".join(["0", *(self._as_text(write_ids) for write_ids in lists)])
        self.views[name] = tables, json.dumps({"validTxnList": text}) if wanted else text
        return [f"{name}: made of {', '.join(tables) or 'nothing'}"]

    def _stale(self, words):
        (name, *more), values = options(words, "as_of", "used")
        reader = str(self.snapshots[values["as_of"]] if "as_of" in values else self.take(0))
        tables, text = self.views[name]
        used = values["used"].split(",") if "used" in values else tables

        def told():
            answer = self.world.get_materialization_invalidation_info(
                self.types.CreationMetadata("hive", "db", name, set(used), text), reader)
            changed = "rows were changed" if answer.sourceTablesUpdateDeleteModified else "nothing but inserts"
            return changed + (", compacted" if answer.sourceTablesCompacted else "")
        return self.said(name, told) + [f"unknown: {word}" for word in more]

    @staticmethod
    def _as_text(write_ids):
        bits = int.from_bytes(write_ids.abortedBits, "little")
        opened, aborted = ([str(write_id) for position, write_id in enumerate(write_ids.invalidWriteIds)
                            if bool(bits >> position & 1) is flag] for flag in (False, True))
        return (f"{write_ids.fullTableName}:{write_ids.writeIdHighWaterMark}:{write_ids.minOpenWriteId or NOBODY}:"
                f"{','.join(opened)}:{','.join(aborted)}")

    def _partitions(self, words):
        (name, table, *names), values = options(words, "op", "write_id")
        db, short, _ = split(table)
        request = self.types.AddDynamicPartitions(self.id(name), int(values.get("write_id", 0)), db, short, names)
        if "op" in values:
            request.operationType = getattr(self.types.DataOperationType, values["op"].upper())
        return self.said(name, lambda: self.world.add_dynamic_partitions(request)
                         or f"wrote {table} {' '.join(names) or 'nowhere'}")

    def _components(self, _):
        return [f"{self.txn_name(txn_id)} writes {place} ({letter}{_with(write_id)})"
                for txn_id, place, letter, write_id in sorted(self.world.components(), key=_by_text)] or ["no components"]

    def _completed(self, _):
        return [f"{self.txn_name(txn_id)} wrote {place}{' and changed rows' if changed else ''}{_with(write_id)}"
                for txn_id, place, write_id, changed in sorted(self.world.completed_components(), key=_by_text)] or [
                    "nothing completed"]

    def _write_set(self, _):
        return [f"{self.txn_name(txn_id)} changed {place} ({letter}), committed at {self.txn_name(commit_id)}"
                for txn_id, place, commit_id, letter in sorted(self.world.writes(), key=_by_text)] or ["no write set"]

    def _latest_conflict(self, names):
        return [f"{name}: {self.txn_name(self.world.get_latest_txnid_in_conflict(self.id(name)))}" for name in names]


def _numbers(ids):
    return " ".join(str(txn_id) for txn_id in sorted(ids)) or "none"


def _with(write_id):
    return f", write id {write_id}" if write_id else ""


def _by_text(row):
    return row[0], str(row)
