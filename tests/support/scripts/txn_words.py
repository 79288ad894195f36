"""Commands about transactions."""

from datetime import timedelta

from tests.support.scripts.names import REFUSALS, flags, options, split, where

KINDS = ("read_only", "compaction", "mater_view_rebuild", "soft_delete", "rebalance_compaction")


class TxnWords:
    """Commands about transactions."""

    def _open(self, words):
        return [answer for name in self._plain(words) for answer in self._opened([name], words)]

    def _together(self, words):
        return self._opened(self._plain(words), words)

    def _open_many(self, words):
        name, size = self._plain(words)
        return self._opened([f"{name}{number}" for number in range(1, int(size) + 1)], words)

    def _open_count(self, words):
        [size] = words
        return self.said(f"{size}", lambda: f"{len(self.world.open_txns(self._request(int(size))).txn_ids)} opened")

    def _opened(self, names, words):
        _, kinds = flags(words, *KINDS)
        _, values = options(words, "user", "host", "agent", "policy")

        def opened():
            request = self._request(len(names), values, *kinds)
            ids = self.world.open_txns(request).txn_ids
            self.txns.update(zip(names, ids, strict=False))
            in_order = ids == list(range(ids[0], ids[0] + len(ids)))
            missing = f", {len(names) - len(ids)} are not" if len(ids) < len(names) else ""
            return f"open{missing}" if in_order else f"open, numbered {ids}"
        return self.said(names[0] if len(names) == 1 else f"{names[0]}..{names[-1]}", opened)

    def _request(self, size, given=None, kind="default", policy=None, sources=None):
        given = given or {}
        return self.types.OpenTxnRequest(
            size, given.get("user", "u"), given.get("host", "h"), agentInfo=given.get("agent"),
            replPolicy=policy or given.get("policy"), replSrcTxnIds=sources, txn_type=getattr(self.types.TxnType, kind.upper()))

    @staticmethod
    def _plain(words):
        return options(flags(words, *KINDS)[0], "user", "host", "agent", "policy")[0]

    def _open_replayed(self, words):
        policy, *sources = words

        def opened():
            before = set(self.txns.values())
            ids = self.world.open_txns(self._request(
                len(sources), kind="repl_created", policy=policy, sources=[int(source) for source in sources])).txn_ids
            self.txns.update({f"{policy}/{source}": txn_id for source, txn_id in zip(sources, ids, strict=True)})
            return "open, as before" if before.issuperset(ids) else "open"
        return self.said(" ".join(f"{policy}/{source}" for source in sources), opened)

    def _abort(self, words):
        names, values = options(words, "code", "policy")
        kind = self.types.TxnType.DEFAULT if "policy" in values else None
        return self.each(names, "aborted", lambda name: self.world.abort_txn(self.types.AbortTxnRequest(
            self.id(name), errorCode=int(values["code"]) if "code" in values else None, replPolicy=values.get("policy"),
            txn_type=kind)))

    def _abort_all(self, words):
        names, values = options(words, "code")
        ids = [self.id(name) for name in self.expanded(names)]
        return self.said(" ".join(names), lambda: self.world.abort_txns(self.types.AbortTxnsRequest(
            ids, errorCode=int(values["code"]) if "code" in values else None)) or "aborted where open")

    def _abort_replayed(self, words):
        policy, *sources = words
        return [answer for source in sources for answer in self.said(
            f"{policy}/{source}", lambda source=source: self.world.abort_txn(self.types.AbortTxnRequest(
                int(source), replPolicy=policy, txn_type=self.types.TxnType.REPL_CREATED)) or "aborted")]

    def _commit(self, words):
        names, values = options(words, "excl", "policy", "key", "last_id")

        def committed(name):
            request = self.types.CommitTxnRequest(self.id(name), replPolicy=values.get("policy"))
            if "policy" in values:
                request.txn_type = self.types.TxnType.DEFAULT
            if "excl" in values:
                request.exclWriteEnabled = values["excl"] == "true"
            if "key" in values:
                table, _, pair = values["key"].partition(":")
                request.keyValue = self.types.CommitTxnKeyValue(
                    self.world.table_id(where(table)), *pair.split("=", 1))
            if "last_id" in values:
                request.replLastIdInfo = self._last_id(values["last_id"])
            self.world.commit_txn(request)
        return self.each(names, "committed", committed)

    def _last_id(self, text):
        number, _, places = text.partition(":")
        db, table, _ = split(places.split(",")[-1])
        return self.types.ReplLastIdInfo(
            database=db, lastReplId=int(number), table=table,
            partitionList=[partition for _, _, partition in map(split, places.split(",")) if partition] or None)

    def _commit_replayed(self, words):
        policy, source, *writes = words
        events = []
        for write in writes:
            place, _, write_id = write.rpartition(":")
            db, table, partition = split(place)
            events.append(self.types.WriteEventInfo(int(write_id), db, table, "", partition))
        return self.said(f"{policy}/{source}", lambda: self.world.commit_txn(self.types.CommitTxnRequest(
            int(source), replPolicy=policy, txn_type=self.types.TxnType.REPL_CREATED, writeEventInfos=events))
            or "committed")

    def _heartbeat(self, names):
        def heard(name):
            is_lock = name in self.requests or (name not in self.txns and name.startswith("l"))
            self.world.heartbeat(self.types.HeartbeatRequest(
                lockid=self.id(name) if is_lock else 0, txnid=0 if is_lock or name == "nothing" else self.id(name)))
        return self.each(names, "alive", heard)

    def _heartbeat_range(self, names):
        low, high = (self.id(name) for name in names)
        answer = self.world.heartbeat_txn_range(self.types.HeartbeatTxnRangeRequest(low, high))
        return [f"{names[0]}..{names[1]}: aborted {self.listed(answer.aborted)}, not there {self.listed(answer.nosuch)}"]

    def _txns(self, words):
        if words[:1] == ["hiding"]:
            hidden = [getattr(self.types.TxnType, kind.upper()) for word in words[1:] for kind in word.split(",")]
            answer = self.world.get_open_txns_req(self.types.GetOpenTxnsRequest(excludeTxnTypes=hidden))
        else:
            answer = self.world.get_open_txns()
        aborted = {txn_id for position, txn_id in enumerate(answer.open_txns)
                   if int.from_bytes(answer.abortedBits, "little") >> position & 1}
        if answer.open_txns != sorted(set(answer.open_txns)):
            return [f"out of order: {answer.open_txns}"]
        return [f"up to {self.txn_name(answer.txn_high_water_mark)}: open {self.listed(set(answer.open_txns) - aborted)}, "
                f"aborted {self.listed(aborted)}, oldest open {self.txn_name(answer.min_open_txn)}"
                + (f", bits {answer.abortedBits.hex()}" if answer.abortedBits else "")]

    def _info(self, _):
        answer = self.world.get_open_txns_info()
        states = self.types.TxnState._VALUES_TO_NAMES
        return [f"up to {self.txn_name(answer.txn_high_water_mark)}",
                *(f"{self.txn_name(txn.id)}: {states[txn.state].lower()}, {txn.user}@{txn.hostname} with {txn.agentInfo}, "
                  f"since {self._at(txn.startedTime)}, {txn.heartbeatCount} heartbeats, "
                  f"the last at {self._at(txn.lastHeartbeatTime)}" for txn in answer.open_txns)]

    def _seed_txns(self, words):
        [number] = words
        return self.said(number, lambda: self.world.seed_txn_id(self.types.SeedTxnIdRequest(int(number)))
                         or "is the next transaction")

    def _number(self, names):
        return [f"{name}: {self.txns[name]}" for name in names]

    def _reason(self, names):
        return [f"{name}: {self.world.abort_code(self.txns[name])}" for name in names]

    def _advance(self, words):
        [text] = words
        self.world.advance(timedelta(seconds=int(text.removesuffix("s"))))
        return []

    def _reap(self, words):
        del words
        before = self._alive()
        self.world.expire()
        after = self._alive()
        self.world.purge()
        gone = [name for name, lock_id in self.requests.items() if lock_id in before[1] - after[1]]
        return [*([f"timed out: {self.listed(before[0] - after[0])}"] if before[0] - after[0] else []),
                *([f"gone: {', '.join(gone)}"] if gone else [])] or ["nobody has timed out"]

    def _purge(self, _):
        self.world.purge()
        return []

    def _clean(self, _):
        self.world.clean()
        self.world.purge()
        return []

    def _alive(self):
        open_ones = {txn.id for txn in self.world.get_open_txns_info().open_txns if txn.state == self.types.TxnState.OPEN}
        return open_ones, {row.lockid for row in self.world.show_locks(self.types.ShowLocksRequest()).locks}

    def _at(self, instant):
        """Seconds since the story's beginning."""
        return f"{(instant - self.world.beginning) // 1000} s" if instant else "no time"

    def each(self, names, done, command):
        """One answer for each name."""
        return [answer for name in names for answer in self.said(name, lambda name=name: command(name) or done)]

    def said(self, name, command):
        """Run a command and return its result, or the reason of its refusal."""
        try:
            return [f"{name}: {command()}"]
        except REFUSALS as error:
            return [f"{name}: {self.refused(error)}"]
