"""Commands about locks."""

import re

from tests.support.scripts.names import flags, options, split

FLAGS = ("dynamic", "plain", "zero_wait", "ctas")

FILTERS = ("db", "table", "partition", "txn")


class LockWords:
    """Commands about locks."""

    def _lock(self, words):
        name, *words = words
        words, options_of = options(words, "txn", "op", "user", "agent")
        words, wanted = flags(words, *FLAGS)
        def component(text):
            kind, place, *operation = text.split()
            db, table, partition = split(place)
            return self.types.LockComponent(
                type=getattr(self.types.LockType, kind.upper()),
                level=self.types.LockLevel.DB, dbname=db, tablename=table, partitionname=partition,
                operationType=getattr(self.types.DataOperationType, (*operation, options_of.get("op", "select"))[0].upper()),
                isTransactional="plain" not in wanted,
                isDynamicPartitionWrite="dynamic" in wanted)

        request = self.types.LockRequest(
            component=[component(text) for text in " ".join(words).split(",") if text.strip()],
            txnid=self.id(options_of["txn"]) if "txn" in options_of else 0, user=options_of.get("user", "u"), hostname="h",
            agentInfo=options_of.get("agent"), zeroWaitReadEnabled="zero_wait" in wanted, exclusiveCTAS="ctas" in wanted)
        return self.said(name, lambda: self._asked(name, request))

    def _asked(self, name, request):
        answer = self.world.lock(request)
        self.requests[name] = answer.lockid
        if answer.state == self.types.LockState.NOT_ACQUIRED:
            return f"not acquired, {self._refusal(answer.errorMessage)}"
        return self._state(answer)

    def _check(self, names):
        return [answer for name in names for answer in self.said(
            name, lambda name=name: self._state(self.world.check_lock(self.types.CheckLockRequest(self.id(name)))))]

    def _unlock(self, names):
        return self.each(names, "released", lambda name: self.world.unlock(self.types.UnlockRequest(self.id(name))))

    def _locks(self, words):
        rows = sorted(self._rows(options(words, *FILTERS)[1]), key=lambda row: (row.lockid, row.lockIdInternal))
        return [self._row(row) for row in rows] or ["no locks"]

    def _who(self, words):
        rows = self._rows(options(words, *FILTERS)[1])
        return [f"{self._row(row)}; {self._life(row)}" for row in rows] or ["no locks"]

    def _rows(self, given):
        return self.world.show_locks(self.types.ShowLocksRequest(
            given.get("db"), given.get("table"), given.get("partition"), True,
            self.id(given["txn"]) if "txn" in given else None)).locks

    def _row(self, row):
        place = "/".join(part for part in (row.dbname, row.tablename, row.partname) if part)
        return (f"{self.lock_name(row.lockid)}: {self._of(self.types.LockState, row.state)} "
                f"{self._of(self.types.LockType, row.type)} {place}"
                + (f" for {self.txn_name(row.txnid)}" if row.txnid else "")
                + (f", waits for {self.lock_name(row.blockedByExtId)}.{row.blockedByIntId}" if row.blockedByExtId else ""))

    def _life(self, row):
        """Owner, when it was acquired and when it was last heard of."""
        return (f"{row.user}@{row.hostname} with {row.agentInfo}, part {row.lockIdInternal}, "
                f"acquired at {self._at(row.acquiredat)}, heard of at {self._at(row.lastheartbeat)}, "
                f"{row.heartbeatCount} heartbeats")

    def _state(self, answer):
        if answer.state != self.types.LockState.WAITING:
            return self._of(self.types.LockState, answer.state)
        blocker = next((row.blockedByExtId for row in self._rows({})
                        if row.lockid == answer.lockid and row.blockedByExtId), 0)
        return f"waiting for {self.lock_name(blocker)}"

    def _refusal(self, text):
        read = re.match(r"Unable to acquire read lock due to an existing exclusive lock \{lockid:(\d+)", text)
        ctas = re.match(r"Failed to initiate a concurrent CTAS operation with the same table name, lockInfo : "
                        r"\{lockid:(\d+)", text)
        if read:
            return f"the read must not wait for {self.lock_name(int(read[1]))}"
        return f"the table is being made by {self.lock_name(int(ctas[1]))}" if ctas else text

    @staticmethod
    def _of(enum, number):
        return enum._VALUES_TO_NAMES[number].lower()
