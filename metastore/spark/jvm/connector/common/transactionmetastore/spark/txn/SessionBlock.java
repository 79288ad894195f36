package transactionmetastore.spark.txn;

import java.util.Set;
import java.util.function.Supplier;
import transactionmetastore.spark.planner.AcidException;
import transactionmetastore.spark.planner.PlannerClient;

/** The block that a session has open in a catalog, if any. */
public final class SessionBlock {
    private final ThreadLocal<Block> ofStatement = new ThreadLocal<>();
    private Block block;

    /** Null outside a block. */
    public Block open() {
        Block own = ofStatement.get();
        return own != null ? own : ofSession();
    }

    private synchronized Block ofSession() {
        return block != null && block.hasEnded() ? null : block;
    }

    /**
     * Run what is one statement to its user and several to Spark: in the session's block, which is as before when it fails, or in one
     * of its own, which no statement of another thread joins. Returns the tables that a block of its own has written ("db.table").
     */
    public Set<String> together(Supplier<PlannerClient> planner, Runnable statements) {
        Block open = open();
        if (open != null) {
            open.together(statements);
            return Set.of();
        }
        Block own = new Block(planner.get());
        ofStatement.set(own);
        try {
            statements.run();
            return own.commit();
        } catch (Throwable error) {  // Spark's are checked in part
            rollback(own, error);
            throw error;
        } finally {
            ofStatement.remove();
        }
    }

    private static void rollback(Block failed, Throwable why) {
        try {
            failed.rollback();  // if it has not ended
        } catch (RuntimeException other) {
            why.addSuppressed(other);
        }
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

    private Block ended() {
        Block ended = ofSession();
        if (ended == null) throw refusal("No transaction is open in this session: CALL system.begin() opens one.");
        return ended;
    }

    private static AcidException refusal(String sentence) {
        return new AcidException("InvalidOperationError", sentence);
    }
}
