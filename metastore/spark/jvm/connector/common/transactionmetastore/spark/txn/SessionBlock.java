package transactionmetastore.spark.txn;

import java.util.Set;
import transactionmetastore.spark.planner.AcidException;
import transactionmetastore.spark.planner.PlannerClient;

/** The block that a session has open in a catalog, if any. */
public final class SessionBlock {
    private Block block;

    /** Null outside a block. */
    public synchronized Block open() {
        return block != null && block.hasEnded() ? null : block;
    }

    public synchronized void begin(PlannerClient planner) {
        if (open() != null) {
            throw refusal("A transaction is open in this session already: CALL system.commit() or system.rollback() ends it.");
        }
        block = new Block(planner);
    }

    /** Returns the tables that it has written ("db.table"). */
    public Set<String> commit() {
        return ended().commit();
    }

    public void rollback() {
        ended().rollback();
    }

    /** Refuse what is done at once, whatever becomes of a transaction. "what": a sentence's beginning, as "The table t is altered". */
    public void requireNone(String what) {
        if (open() != null) throw atOnce(what);
    }

    public static AcidException atOnce(String what) {
        return refusal(what + " at once, whatever becomes of a transaction: CALL system.commit() or system.rollback() first.");
    }

    private synchronized Block ended() {
        Block ended = open();
        if (ended == null) throw refusal("No transaction is open in this session: CALL system.begin() opens one.");
        return ended;
    }

    private static AcidException refusal(String sentence) {
        return new AcidException("InvalidOperationError", sentence);
    }
}
