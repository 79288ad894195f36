package transactionmetastore.spark.txn;

import java.util.ArrayList;
import java.util.Collections;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Set;
import transactionmetastore.spark.planner.AcidException;
import transactionmetastore.spark.planner.PlannerClient;

/**
 * A block: several statements of a session in one transaction, which only the session ends.
 *
 * Rules kept here. A statement sees the writes of earlier statements. A statement that fails undoes its writes, and the
 * others may still be committed; if the undo fails, nothing may be. Nothing is committed while a statement gives files
 * their names. A program reads in the same transaction what Spark's SQL does not show (metastore/spark/txn/blocks.py).
 */
public final class Block {
    private final MetastoreTxn txn;
    private final AcidTransaction reading;
    private final Set<AcidTransaction> writing = Collections.newSetFromMap(new IdentityHashMap<>());
    private final List<Runnable> undo = new ArrayList<>();
    private final ThreadLocal<List<Runnable>> undoTogether = new ThreadLocal<>();
    private AcidException lost;
    private StreamBatch batch;

    Block(PlannerClient planner) {
        this(planner, false, "block");
    }

    private Block(PlannerClient planner, boolean isReader, String statement) {
        txn = new MetastoreTxn(planner, isReader, statement, true);
        reading = new AcidTransaction(this, txn, false);
    }

    /** Returns a block that only reads, for a program's frames: see Frames. */
    public static Block ofFrames(PlannerClient planner) {
        return new Block(planner, true, "frames");
    }

    public PlannerClient planner() {
        return txn.planner;
    }

    public boolean hasEnded() {
        return txn.isOver();
    }

    /** Returns a new statement that writes. "commitsItself": true if Spark does not end it. */
    public AcidTransaction statement(boolean commitsItself) {
        return new AcidTransaction(this, txn, commitsItself);
    }

    /** Returns the statement that stands for all statements that only read. */
    public AcidTransaction reading() {
        return reading;
    }

    /** Throws AcidException if the block can no longer be committed. */
    synchronized void requireOpen() {
        if (lost != null) throw lost;
    }

    /**
     * Gives up the block after a conflict, and throws the conflict: the snapshot lacks a change of a table that a statement
     * has locked, so no statement may be committed.
     */
    synchronized void isRefused(AcidException conflict) {
        giveUp(new AcidException(conflict.getCondition(), conflict.getMessage()
            + " Nothing of this block is committed: CALL system.rollback() ends it."));
        requireOpen();
    }

    /** Notes that a statement is about to give files their names. */
    synchronized void isWriting(AcidTransaction statement) {
        if (hasEnded()) throw new AcidException("NO_TRANSACTION", "The transaction of this statement is over: nothing of it counts.");
        writing.add(statement);
    }

    synchronized void hasWritten(AcidTransaction statement, List<Runnable> undone) {
        writing.remove(statement);
        undo.addAll(undone);
        if (undoTogether.get() != null) undoTogether.get().addAll(undone);
    }

    synchronized void undo(AcidTransaction statement, List<Runnable> undone) {
        writing.remove(statement);
        undo(undone);
    }

    private void undo(List<Runnable> undone) {
        try {
            AcidTransaction.run(undone);
        } catch (RuntimeException error) {
            giveUp(new AcidException("TxnAbortedError", "A statement of this transaction failed, and what it wrote could not be removed, so "
                + "nothing of it is committed: CALL system.rollback(). " + error.getMessage()));
            throw error;
        }
    }

    /** Runs statements of this thread, and undoes all of them when one fails. Writes of other threads stay. */
    void together(Runnable statements) {
        List<Runnable> undone = new ArrayList<>();
        undoTogether.set(undone);
        try {
            statements.run();
        } catch (Throwable error) {  // Spark also throws checked exceptions
            takeBack(undone, error);
            throw error;
        } finally {
            undoTogether.remove();
        }
    }

    private synchronized void takeBack(List<Runnable> undone, Throwable why) {
        undo.removeAll(undone);
        try {
            undo(undone);
        } catch (RuntimeException other) {
            why.addSuppressed(other);
        }
    }

    /**
     * Commits the block, and returns the tables that it has written. Throws AcidException: nothing is committed, unless the
     * error says that it may be.
     */
    synchronized Set<String> commit() {
        requireOpen();
        if (!writing.isEmpty()) {
            throw new AcidException("InvalidOperationError", "A statement of this transaction is still writing: commit after it.");
        }
        try {
            txn.commit(batch);
            undo.clear();
            return txn.written();
        } catch (AcidException error) {
            try {
                undoIfAborted();
            } catch (AcidException other) {
                error.addSuppressed(other);
            }
            throw error;
        }
    }

    /** Rolls the block back, if it has not ended yet. */
    public synchronized void rollback() {
        if (!hasEnded()) undoIfAborted();
    }

    private void undoIfAborted() {
        if (txn.abort()) AcidTransaction.run(undo);
    }

    private void giveUp(AcidException reason) {
        if (lost == null) lost = reason;
        txn.giveUp();
    }

    /** Ends a block that only reads. */
    public void release() {
        Lease ended = txn.left();
        if (ended != null) ended.release();
    }

    // -- for a program's own reads beside Spark's ----------------------------------------------------------------------

    /** Notes that the block writes a batch of a streaming query: see StreamBatch. */
    public synchronized void brings(String table, String query, long number, String plan) {
        batch = new StreamBatch(table, query, number, plan);
    }

    /** Returns the transaction's id. The first call opens the transaction. */
    public long id() {
        requireOpen();
        return txn.id();
    }

    /** Takes the locks of a statement that reads tables ("db.table"). */
    public void lock(List<String> reads) {
        requireOpen();
        for (String table : reads) txn.read(table);
        txn.lock();
    }

    /** Returns the snapshot's transactions, in Hive's text. */
    public String txns() {
        return txn.snapshot(null).txns();
    }

    /** Returns the snapshot's write ids of a table, in Hive's text. */
    public String writeIds(String table) {
        return txn.snapshot(table).writeIds().get(table);
    }

    /** Returns the write id by which the block has written a table; null if it has not. */
    public Long ownWriteId(String table) {
        return txn.ownWriteId(table);
    }
}
