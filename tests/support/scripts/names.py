"""The names of a script, and what numbers and errors look like in its answers."""

import re

from thrift.protocol.TBase import TExceptionBase
from thrift.Thrift import TApplicationException

from tests.support.model.state import place

UNKNOWN = 10**12

# Server texts may go on after these, to say more; the first that fits is what the script shows.
PHRASES = (
    (r"Transaction txnid:(\d+) already aborted", "TxnAbortedException", "aborted already"),
    (r"Transaction txnid:(\d+) was aborted to end a deadlock", "TxnAbortedException", "aborted to end a deadlock"),
    (r"Transaction txnid:(\d+) is already committed\.", "NoSuchTxnException", "committed already"),
    (r"No such transaction txnid:(\d+)", "NoSuchTxnException", "no such transaction"),
    (r"No such txn: (\d+)", "NoSuchTxnException", "no such transaction, it is committed"),
    (r"No such lock lockid:(\d+)", "NoSuchLockException", "no such lock"),
    (r"No such lock: (\d+)", "NoSuchLockException", "no such lock"),
    (r"Unlocking locks associated with transaction not permitted\.  ", "TxnOpenException", "held by an open transaction"),
    (r"Maximum allowed number of open transactions has been reached\. See hive\.max\.open\.txns\.", "internal error",
     "too many are open"),
    (r"Invalid input for number of txns: (\d+|-\d+)", "internal error", "no such number of transactions"),
    (r"invalid write id (\d+) for table (\S+)", "MetaException", "nobody has that write id"),
    (r"Invalid txnId seed (\d+), the highWaterMark is (\d+)", "MetaException", "the transactions are past that"),
    (r"The write ids of (\S+) have begun already", "MetaException", "the write ids have begun already"),
    (r".*has to wait", "MetaException", "has to wait"),
    (r"Transaction txnid:(\d+) is read-only", "MetaException", "read-only"),
)
CONFLICT = re.compile(r"Aborting \[txnid:(\d+),(\d+)\] due to a write conflict on (\S+) committed by "
                      r"\[txnid:(\d+),(\d+)\] (\S+)")


class Names:
    """Names of transactions and lock requests, in the order of their making."""

    def __init__(self):
        self.txns = {}
        self.requests = {}

    def txn(self, name):
        """Return the number of a transaction."""
        return self.txns.get(name, UNKNOWN)

    def id(self, name):
        return self.txns[name] if name in self.txns else self.requests.get(name, UNKNOWN)

    def txn_name(self, number):
        if not number:
            return "none"
        return next((name for name, txn_id in self.txns.items() if txn_id == number), f"#{number}")

    def lock_name(self, number):
        return next((name for name, lock_id in self.requests.items() if lock_id == number), f"#{number}")

    def expanded(self, words):
        """``m1..m3`` are m1, m2, m3."""
        for word in words:
            low, dots, high = word.partition("..")
            if dots:
                stem = low.rstrip("0123456789")
                yield from (f"{stem}{number}" for number in range(int(low[len(stem):]), int(high[len(stem):]) + 1))
            else:
                yield word

    def listed(self, numbers):
        """Transactions by name, long rows of neighbours as first..last."""
        ranges = []
        for name in map(self.txn_name, sorted(numbers)):
            stem = name.rstrip("0123456789")
            number = int(name[len(stem):] or 0)
            if ranges and ranges[-1][0] == stem and ranges[-1][2] == number - 1:
                ranges[-1][2] = number
            else:
                ranges.append([stem, number, number, name])
        return ", ".join(
            name if low == high else f"{stem}{low}, {stem}{high}" if high == low + 1 else f"{stem}{low}..{stem}{high}"
            for stem, low, high, name in ranges) or "none"

    def refused(self, error):
        """Describe an exception in the words of the scripts."""
        if isinstance(error, TApplicationException) and error.type == TApplicationException.MISSING_RESULT:
            return "cannot be told"
        text = error.message or ""
        kind = "internal error" if isinstance(error, TApplicationException) else type(error).__name__
        conflict = CONFLICT.match(text)
        if conflict and kind == "TxnAbortedException":
            _, at, where, winner, winner_at, letters = conflict.groups()
            overlap = f" (at {self.txn_name(int(at))}, {self.txn_name(int(winner_at))})"
            return f"aborted, {self.txn_name(int(winner))} changed {where} first ({letters})" + (
                "" if int(at) == int(winner_at) == max(self.txns.values()) else overlap)
        for pattern, expected, phrase in PHRASES:
            if re.match(pattern, text):
                return phrase if kind == expected else f"{phrase} ({kind})"
        return f"refused ({kind})"


REFUSALS = (TExceptionBase, TApplicationException)


def options(words, *known):
    """Split words into a list of plain ones, and a dictionary of those of the form known=value."""
    values = dict(word.split("=", 1) for word in words if word.split("=", 1)[0] in known and "=" in word)
    return [word for word in words if word.split("=", 1)[0] not in known or "=" not in word], values


def flags(words, *known):
    return [word for word in words if word not in known], {word for word in words if word in known}


def split(text):
    """(db, table, partition) in the script's own spelling."""
    table, _, partition = text.partition("/")
    db, _, table = table.partition(".")
    return db, table or None, partition or None


def where(text):
    return place(*split(text))
