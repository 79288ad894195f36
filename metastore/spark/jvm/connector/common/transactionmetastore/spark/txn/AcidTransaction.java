package transactionmetastore.spark.txn;

import java.net.InetAddress;
import java.net.UnknownHostException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.security.UserGroupInformation;
import org.apache.spark.SparkContext;
import org.apache.spark.sql.SparkSession;
import transactionmetastore.spark.planner.AcidException;
import transactionmetastore.spark.planner.PlannerClient;

/**
 * The transaction of one statement, over all tables that it reads and writes; in a block, the statement's part of the
 * block's transaction.
 *
 * Rules kept here. The plan of a statement first names the tables that it reads and writes, so that locks come before the
 * snapshot. A reader (kind READ_ONLY) is the read of one query: it is open while an execution or a late job uses it, see
 * ReadsEnd. A later use opens another transaction, for the same snapshot. A writer ends once, by commit or abort. In a
 * block neither ends the transaction: a commit keeps the statement's writes until the end of the block, and an abort
 * removes them.
 */
public final class AcidTransaction {
    private static final int STATEMENT_LENGTH = 1000;
    private static final ThreadLocal<long[]> COUNTED = new ThreadLocal<>();  // two numbers: of statements and of rows

    private final MetastoreTxn txn;
    private final Block block;
    private final boolean commitsItself;
    private final List<Runnable> planned = new ArrayList<>();
    private final List<Runnable> undo = new ArrayList<>();
    private boolean hasEnded;
    private int uses;
    private StreamBatch batch;
    private final WrittenRows written = new WrittenRows();

    private AcidTransaction(PlannerClient planner, boolean isReader, String statement, boolean commitsItself) {
        String text = statement.substring(0, Math.min(statement.length(), STATEMENT_LENGTH));
        this.txn = new MetastoreTxn(planner, isReader, text, false);
        this.block = null;
        this.commitsItself = commitsItself;
    }

    /** Creates a statement of a block. */
    AcidTransaction(Block block, MetastoreTxn txn, boolean commitsItself) {
        this.txn = txn;
        this.block = block;
        this.commitsItself = commitsItself;
    }

    /** Returns the transaction of a query. "statement": its text as far as it is known, for the list of open transactions. */
    public static AcidTransaction reader(PlannerClient planner, String statement) {
        return new AcidTransaction(planner, true, statement, false);
    }

    public static AcidTransaction writer(PlannerClient planner, String statement) {
        return new AcidTransaction(planner, false, statement, false);
    }

    /** Returns the transaction of a statement for which Spark begins none: it commits when the statement has written. */
    public static AcidTransaction committingItself(PlannerClient planner, String statement) {
        return new AcidTransaction(planner, false, statement, true);
    }

    public PlannerClient planner() {
        return txn.planner;
    }

    public boolean isReader() {
        return txn.isReader;
    }

    /** Returns true if this is the transaction of a statement that writes. */
    public boolean mayWrite() {
        return !isReader() && (block == null || block.reading() != this);
    }

    public boolean isOf(Block open) {
        return block == open;
    }

    /** Begins a use. A reader stays open until all its uses have ended, a writer until its own end. */
    public void use() {
        if (!isReader()) return;
        synchronized (this) {
            ++uses;
        }
    }

    /**
     * Ends a use. It never waits for a thread that plans, and calls the planner without holding a lock: Spark's only
     * listener thread runs this.
     */
    public void release() {
        if (!isReader()) return;
        Lease left;
        synchronized (this) {
            left = --uses > 0 ? null : txn.left();
        }
        if (left != null) left.release();
    }

    /** Ends the execution that read in the transaction, and a statement whose transaction Spark does not end. */
    public void executionEnded() {
        if (commitsItself) close();
    }

    /** Runs something after a pause, in a thread that may wait. */
    public static void after(long pauseMs, Runnable work) {
        Heartbeats.after(pauseMs, work);
    }

    /** Ends all transactions that no execution ends, when Spark stops. */
    public static void endAll() {
        Heartbeats.endAll();
    }

    public synchronized boolean hasEnded() {
        return hasEnded || txn.isOver();
    }

    /** Notes that the statement reads a table ("db.table"). */
    public void read(String table) {
        txn.read(table);
    }

    /** Notes that the statement writes a table. "partition": the name of the only partition that it writes, or null. */
    public synchronized void write(String table, WriteKind kind, String partition) {
        if (isReader()) throw new IllegalStateException("A reader writes nothing");
        planned.add(() -> txn.write(table, kind, partition));
    }

    /** Registers writes only when the statement runs, so that EXPLAIN takes no locks of the block. */
    private synchronized void runs() {
        planned.forEach(Runnable::run);
        planned.clear();
    }

    public boolean hasBegun() {
        return txn.hasBegun();
    }

    /** Returns the transaction's id, which never changes. The first call opens the transaction and takes the locks. */
    public long id() {
        lock();
        return txn.id();
    }

    /** Returns the snapshot over all tables that the statement reads, "table" among them. The first call takes the locks. */
    public Snapshot snapshot(String table) {
        lock();
        return txn.snapshot(table);
    }

    /** Takes the locks for the tables noted by read and write, as far as they are not held yet. */
    public void lock() {
        if (block != null) block.requireOpen();
        runs();
        try {
            txn.lock();
        } catch (AcidException refusal) {
            if (block != null && refusal.is("WriteConflictError")) block.isRefused(refusal);
            throw refusal;
        }
    }

    /** Returns the next statement id, from 0 on: each write of a table has its own. */
    public int nextStatement() {
        return txn.nextStatement();
    }

    /** Reserves further statement ids after the statement's own. */
    public void hasUsed(int further) {
        txn.hasUsed(further);
    }

    /** Notes the write id by which the statement writes a table. */
    public void hasWriteId(String table, long writeId) {
        txn.hasWriteId(table, writeId);
    }

    /** Notes a new base in a location: it hides what the same transaction writes there later. */
    public void overwrites(String location) {
        txn.overwrites(location);
        whenUndone(() -> txn.overwritesNoMore(location));
    }

    public boolean hasOverwritten(String location) {
        return txn.hasOverwritten(location);
    }

    /** Registers an action that removes written files; it runs when the transaction is undone. */
    public synchronized void whenUndone(Runnable action) {
        if (block != null) block.isWriting(this);
        undo.add(action);
    }

    /** Returns true if the transaction commits by itself, because Spark does not end it. */
    public boolean commitsItself() {
        return commitsItself;
    }

    /** Notes that the statement has written everything. Where Spark has no transactions, this commits. */
    public void statementWritten() {
        if (commitsItself) commit();
    }

    /** Notes that the transaction writes a batch of a streaming query; the commit stores it with the table. */
    public synchronized void brings(StreamBatch written) {
        batch = written;
    }

    /** Notes a table's new definition, which the commit sets. The statement replaces the table's rows. */
    public void replaces(Map<String, Object> definition) {
        txn.replaces(definition);
    }

    /**
     * Adds the numbers of rows that a statement has written, for the table's history. An update counts as inserted, deleted
     * and "updated".
     */
    public synchronized void wrote(String table, long inserted, long deleted, long updated) {
        written.add(table, inserted, deleted);
        changed(inserted + deleted - updated);
    }

    /** Adds to the number of rows that this thread's statements have changed. */
    public static void changed(long rows) {
        long[] counted = COUNTED.get();
        if (counted == null) return;
        ++counted[0];
        counted[1] += rows;
    }

    /** Starts to count the rows that statements of this thread change. */
    public static void count() {
        COUNTED.set(new long[2]);
    }

    public static boolean isCounting() {
        return COUNTED.get() != null;
    }

    /** Stops counting, and returns the number of rows changed since count(); null where no statement has written. */
    public static Long counted() {
        long[] counted = COUNTED.get();
        COUNTED.remove();
        return counted == null || counted[0] == 0 ? null : Long.valueOf(counted[1]);
    }

    /**
     * Commits the transaction. After an error it is unknown whether the commit happened: an abort decides it, and undoes
     * what was aborted.
     */
    public synchronized void commit() {
        if (hasEnded) return;
        hasEnded = true;
        txn.count(written);
        if (block != null) {
            undo.add(() -> txn.countNot(written));
            block.hasWritten(this, undo);
            undo.clear();
            return;
        }
        try {
            txn.commit(batch);
        } catch (AcidException error) {
            try {
                undoIfAborted();
                if (batch != null && error.is("AlreadyExistsError") && batch.isThere(txn.planner)) return;  // a faster run of the same batch committed
            } catch (AcidException | IllegalStateException other) {
                error.addSuppressed(other);
            }
            throw error;
        }
        undo.clear();
    }

    /**
     * Aborts the transaction. Returns true if none of its writes count; false when it is committed, or may be. It may be
     * called more than once.
     */
    public synchronized boolean abort() {
        hasEnded = true;
        return undoIfAborted();
    }

    /** Ends the transaction: aborts it unless it was committed or aborted. */
    public synchronized void close() {
        if (hasEnded) return;
        hasEnded = true;
        try {
            undoIfAborted();
        } catch (AcidException error) {
            // the transaction expires, and the Cleaner removes its files
        }
    }

    private boolean undoIfAborted() {
        if (block != null) {
            block.undo(this, undo);
            return true;
        }
        boolean isAborted = txn.abort();
        if (isAborted) run(undo);
        return isAborted;
    }

    /** Runs each action once. */
    static void run(List<Runnable> undo) {
        List<Runnable> todo = List.copyOf(undo);
        undo.clear();
        for (Runnable action : todo) action.run();
    }

    /** Returns the identity of the planner's caller. */
    public static Map<String, String> caller() {
        return Map.of("user", user(), "host", host(), "agent", agent());
    }

    private static String user() {
        try {
            return UserGroupInformation.getCurrentUser().getShortUserName();
        } catch (java.io.IOException error) {
            return System.getProperty("user.name", "");
        }
    }

    private static String host() {
        try {
            return InetAddress.getLocalHost().getHostName();
        } catch (UnknownHostException error) {
            return "localhost";
        }
    }

    private static String agent() {
        SparkContext context = SparkSession.active().sparkContext();
        return "spark " + context.version() + " " + context.applicationId();
    }
}
