"""A cut-over from a Hive metastore's transactions to ours, and back: no table is moved, no id goes backwards."""

from dataclasses import dataclass

from metastore.db.engine import Database
from metastore.errors import InvalidOperationError
from metastore.txns.adoption import store
from metastore.txns.adoption.rules import Marks, adoption_refusal, release_refusal
from metastore.txns.adoption.store import AdoptedState

_TIMES = "(extract(epoch FROM now()) * 1000)::bigint"


@dataclass(frozen=True)
class AdoptionService:
    """The take-over from a Hive metastore, and the return to it."""

    db: Database

    def adopt(self, hive_url: str, *, dry_run: bool) -> dict[str, object]:
        """Take over marks, transactions that are open or aborted, and locks; return a summary. ``dry_run``: only look.

        Serialises on: the transaction counter. Retry: idempotent, until this service has allocated an id.
        Raises: InvalidOperationError when an id would go backwards or compactions are in work there.
        """
        there = store.read_hive(hive_url)
        with self.db.begin() as pg:
            here = store.lock_marks(pg)
            refusal = adoption_refusal(here, there.marks, there.compactions)
            if refusal is not None:
                raise InvalidOperationError(f"Nothing was taken over. {refusal}.")
            if not dry_run:
                store.insert_state(pg, there)
        states = [state for _, state, *_ in there.txns]
        return {
            **_shown(there.marks),
            "open_txns": states.count("open"),
            "aborted_txns": states.count("aborted"),
            "locks": len(there.locks),
            "done": "nothing: a dry run" if dry_run else "taken over",
        }

    def release(self) -> str:
        """Return the SQL with which a Hive metastore 4.x goes on above the ids allocated here.

        Raises: InvalidOperationError while transactions are open or compactions are in work.
        """
        with self.db.begin() as pg:
            kept = store.select_kept(pg)
        refusal = release_refusal(kept.open_txns, kept.compactions)
        if refusal is not None:
            raise InvalidOperationError(f"Nothing is handed back. {refusal}.")
        return "\n".join(_statements(kept)) + "\n"


def _shown(marks: Marks) -> dict[str, object]:
    return {
        "next_txn_id": marks.txn_id,
        "next_lock_id": marks.lock_id,
        "next_compaction_id": marks.compaction_id,
        "tables": len(marks.write_ids),
    }


def _statements(kept: AdoptedState) -> list[str]:
    marks = kept.marks
    done = ["-- For the database of a Hive metastore 4.x, in one go: psql -1 -v ON_ERROR_STOP=1 -f THIS_FILE URL"]
    # Hive takes the row with the highest id for its newest transaction, and the highest write id that a row has for a
    # table's mark: one committed transaction more stands for all whose owners are forgotten here.
    last = marks.txn_id
    done += [
        f'INSERT INTO "TXNS" ("TXN_ID", "TXN_STATE", "TXN_STARTED", "TXN_LAST_HEARTBEAT", "TXN_USER",'
        f' "TXN_HOST", "TXN_TYPE") VALUES ({txn}, \'{state}\', {_TIMES}, {_TIMES}, {_text(user)}, {_text(host)},'
        f' {kind}) ON CONFLICT ("TXN_ID") DO UPDATE SET "TXN_STATE" = EXCLUDED."TXN_STATE";'
        for txn, state, kind, user, host in [
            *((txn, "a", kind, user, host) for txn, kind, user, host in kept.aborted),
            (last, "c", 0, "metastore", "metastore"),
        ]
    ]
    aborted = ", ".join(str(txn) for txn, *_ in kept.aborted) or "0"
    done += [
        f'UPDATE "TXNS" SET "TXN_STATE" = \'c\' WHERE "TXN_STATE" IN (\'o\', \'a\') AND "TXN_ID" NOT IN ({aborted});',
        *(
            f'DELETE FROM "{name}";'
            for name in (
                "HIVE_LOCKS",
                "TXN_COMPONENTS",
                "TXN_TO_WRITE_ID",
                "COMPLETED_TXN_COMPONENTS",
                "MIN_HISTORY_WRITE_ID",
            )
        ),
        f"SELECT setval('\"TXNS_TXN_ID_SEQ\"', {last});",
        f'UPDATE "NEXT_LOCK_ID" SET "NL_NEXT" = greatest("NL_NEXT", {marks.lock_id});',
        f'UPDATE "NEXT_COMPACTION_QUEUE_ID" SET "NCQ_NEXT" = greatest("NCQ_NEXT", {marks.compaction_id});',
    ]
    for name, next_id in sorted(marks.write_ids.items()):
        where = f'"NWI_DATABASE" = {_text(name.db)} AND "NWI_TABLE" = {_text(name.table)}'
        done += [
            f'UPDATE "NEXT_WRITE_ID" SET "NWI_NEXT" = greatest("NWI_NEXT", {next_id}) WHERE {where};',
            (
                f'INSERT INTO "NEXT_WRITE_ID" ("NWI_DATABASE", "NWI_TABLE", "NWI_NEXT") SELECT {_text(name.db)},'
                f' {_text(name.table)}, {next_id} WHERE NOT EXISTS (SELECT FROM "NEXT_WRITE_ID" WHERE {where});'
            ),
        ]
    owned = {(db, table, write_id) for _, db, table, write_id in kept.owners}
    highest = [
        (last, name.db, name.table, next_id - 1)
        for name, next_id in sorted(marks.write_ids.items())
        if next_id > 1 and (name.db, name.table, next_id - 1) not in owned
    ]
    done += [
        f'INSERT INTO "TXN_TO_WRITE_ID" ("T2W_TXNID", "T2W_DATABASE", "T2W_TABLE", "T2W_WRITEID") VALUES ({txn},'
        f" {_text(db)}, {_text(table)}, {write_id});"
        for txn, db, table, write_id in [*kept.owners, *highest]
    ]
    done += [
        'INSERT INTO "TXN_COMPONENTS" ("TC_TXNID", "TC_DATABASE", "TC_TABLE", "TC_PARTITION", "TC_OPERATION_TYPE",'
        f" \"TC_WRITEID\") VALUES ({txn}, {_text(db)}, {_text(table)}, {_text(partition)}, '{operation}',"
        f" {_number(write_id)});"
        for txn, db, table, partition, operation, write_id in kept.components
    ]
    done += [
        'INSERT INTO "COMPLETED_TXN_COMPONENTS" ("CTC_TXNID", "CTC_DATABASE", "CTC_TABLE", "CTC_PARTITION",'
        f' "CTC_WRITEID", "CTC_UPDATE_DELETE") VALUES ({txn}, {_text(db)}, {_text(table)}, {_text(partition)},'
        f" {_number(write_id)}, '{'Y' if changed else 'N'}');"
        for txn, db, table, partition, write_id, changed in kept.completed
    ]
    return done


def _number(value: int | None) -> str:
    return "NULL" if value is None else str(value)


def _text(text: str) -> str:
    return "NULL" if text == "" else "'" + text.replace("'", "''") + "'"
