package transactionmetastore.spark.txn;

import java.util.Set;
import java.util.function.Supplier;
import transactionmetastore.spark.planner.AcidException;
import transactionmetastore.spark.planner.PlannerClient;

/** The open block of a session in a catalog, if any. */
public final class SessionBlock {
    private final ThreadLocal<Block> ofStatement = new ThreadLocal<>();
    private Block block;

    /** Returns the open block; null outside a block. */
    public Block open() {
        Block own = ofStatement.get();
        return own != null ? own : ofSession();
    }

    private synchronized Block ofSession() {
        return block != null && block.hasEnded() ? null : block;
    }

    /**
     * Runs a statement that Spark takes for several statements. They run in the session's block, which a failure leaves as
     * before, or in a block of their own that no statement of another thread joins. Returns the tables that a block of its
     * own has written ("db.table").
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
        } catch (Throwable error) {  // Spark also throws checked exceptions
            rollback(own, error);
            throw error;
        } finally {
            ofStatement.remove();
        }
    }

    private static void rollback(Block failed, Throwable why) {
        try {
            failed.rollback();  // unless the block has ended already
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

    /** Commits the block, and returns the tables that it has written ("db.table"). */
    public Set<String> commit() {
        return ended().commit();
    }

    public void rollback() {
        ended().rollback();
    }

    /**
     * Refuses inside a block an operation that no rollback undoes. "what": a sentence's beginning, as "The table t is
     * altered".
     */
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
