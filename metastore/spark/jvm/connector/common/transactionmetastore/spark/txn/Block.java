package transactionmetastore.spark.txn;

import java.util.ArrayList;
import java.util.Collections;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Set;
import transactionmetastore.spark.planner.AcidException;
import transactionmetastore.spark.planner.PlannerClient;

/**
 * Several statements of a session in one transaction, which only the session ends.
 *
 * Rules kept here. A statement sees what those before it have written. One that fails takes back what it wrote, and the others may
 * still be committed; where something of it is left, nothing may be. Nothing is committed while a statement gives files their names.
 * A program reads in the same transaction what Spark's SQL does not show (metastore/spark/txn/blocks.py).
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

    /** One that only reads, for a program's frames: see Frames. */
    public static Block ofFrames(PlannerClient planner) {
        return new Block(planner, true, "frames");
    }

    public PlannerClient planner() {
        return txn.planner;
    }

    public boolean hasEnded() {
        return txn.isOver();
    }

    /** A statement that writes; "commitsItself": whether no Spark ends it. */
    public AcidTransaction statement(boolean commitsItself) {
        return new AcidTransaction(this, txn, commitsItself);
    }

    /** What all statements are that only read. */
    public AcidTransaction reading() {
        return reading;
    }

    /** Throws AcidException where it cannot be committed any more. */
    synchronized void requireOpen() {
        if (lost != null) throw lost;
    }

    /** The snapshot lacks a change of what a statement has locked: nothing of the others may be committed either. Throws that. */
    synchronized void isRefused(AcidException conflict) {
        giveUp(new AcidException(conflict.getCondition(), conflict.getMessage()
            + " Nothing of this block is committed: CALL system.rollback() ends it."));
        requireOpen();
    }

    /** A statement is about to give files their names. */
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

    /** Run statements of this thread, of which nothing is left when one of them fails. What other threads write stays. */
    void together(Runnable statements) {
        List<Runnable> undone = new ArrayList<>();
        undoTogether.set(undone);
        try {
            statements.run();
        } catch (Throwable error) {  // Spark's are checked in part
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

    /** Returns the tables that it has written. Throws AcidException: nothing of it is committed, unless that says that it may be. */
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

    /** Nothing of it counts, if it has not ended yet. */
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

    /** End one that only reads. */
    public void release() {
        Lease ended = txn.left();
        if (ended != null) ended.release();
    }

    // -- for a program's own reads beside Spark's ----------------------------------------------------------------------

    /** What it writes is a batch of a streaming query: see StreamBatch. */
    public synchronized void brings(String table, String query, long number, String plan) {
        batch = new StreamBatch(table, query, number, plan);
    }

    /** Its id. The first call opens it. */
    public long id() {
        requireOpen();
        return txn.id();
    }

    /** Take the locks of a statement that reads tables ("db.table"). */
    public void lock(List<String> reads) {
        requireOpen();
        for (String table : reads) txn.read(table);
        txn.lock();
    }

    /** The snapshot's transactions, as Hive writes them. */
    public String txns() {
        return txn.snapshot(null).txns();
    }

    /** What the snapshot has of a table, as Hive writes it. */
    public String writeIds(String table) {
        return txn.snapshot(table).writeIds().get(table);
    }

    /** The write id by which it has written a table; null where it has not. */
    public Long ownWriteId(String table) {
        return txn.ownWriteId(table);
    }
}
