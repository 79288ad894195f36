package transactionmetastore.spark.txn;

import com.fasterxml.jackson.databind.JsonNode;
import java.lang.ref.Cleaner;
import java.net.InetAddress;
import java.net.UnknownHostException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.hadoop.security.UserGroupInformation;
import org.apache.spark.SparkContext;
import org.apache.spark.sql.SparkSession;
import transactionmetastore.spark.planner.AcidException;
import transactionmetastore.spark.planner.PlannerClient;

/**
 * The transaction of one statement, over all tables that it reads and writes.
 *
 * Rules kept here. The transaction opens when an id or a snapshot is first needed, so that a statement that is only analysed
 * leaves nothing behind. Locks come before the snapshot: the plan of a statement first names the tables that it reads and
 * writes. A single snapshot covers all of them.
 * A reader (kind READ_ONLY) is open while it has uses. The next use opens another transaction, with a new snapshot. Readers of
 * tables that meet in a statement are joined, for good. A writer ends once, by commit or abort.
 */
public final class AcidTransaction {
    private static final Cleaner CLEANER = Cleaner.create();
    private static final int STATEMENT_LENGTH = 1000;
    private static final int LOCK_WAIT_SECONDS = 300;

    private record Write(String table, WriteKind kind, String partition) {}

    private final PlannerClient planner;
    private final boolean isReader;
    private final String statement;
    private final Set<String> reads = new LinkedHashSet<>();
    private final Set<Write> writes = new LinkedHashSet<>();
    private final Set<Object> locked = new LinkedHashSet<>();
    private final Map<String, String> writeIds = new HashMap<>();
    private Lease lease;
    private String txns;
    private int statements;
    private final List<Runnable> undo = new ArrayList<>();
    private boolean hasEnded, commitsItself;
    private boolean isVouched = true;
    private int uses;
    private StreamBatch batch;
    private volatile AcidTransaction joined;

    private AcidTransaction(PlannerClient planner, boolean isReader, String statement) {
        this.planner = planner;
        this.isReader = isReader;
        this.statement = statement.substring(0, Math.min(statement.length(), STATEMENT_LENGTH));
    }

    /** "statement": its text as far as it is known, for the list of open transactions. */
    public static AcidTransaction reader(PlannerClient planner, String statement) {
        return new AcidTransaction(planner, true, statement);
    }

    public static AcidTransaction writer(PlannerClient planner, String statement) {
        return new AcidTransaction(planner, false, statement);
    }

    /** For a statement that Spark runs in no transaction: it commits when the statement has written. */
    public static AcidTransaction committingItself(PlannerClient planner, String statement) {
        AcidTransaction transaction = writer(planner, statement);
        transaction.commitsItself = true;
        return transaction;
    }

    public PlannerClient planner() {
        return planner;
    }

    public boolean isReader() {
        return isReader;
    }

    /** Itself, or the reader that it was joined to. */
    public AcidTransaction live() {
        AcidTransaction other = joined;
        return other == null ? this : other.live();
    }

    /** The reader for the tables of both. A read that has begun stays in its transaction. */
    public static AcidTransaction join(AcidTransaction reader, AcidTransaction other) {
        synchronized (AcidTransaction.class) {
            AcidTransaction first = reader.live(), second = other.live();
            if (first == second) return first;
            for (String table : second.reads()) first.read(table);
            second.joined = first;
            return first;
        }
    }

    private synchronized List<String> reads() {
        return List.copyOf(reads);
    }

    /** Begin a use: a reader stays open until all its uses have ended. A writer stays open until its own end. */
    public synchronized Use use() {
        ++uses;
        return new Use(this);
    }

    /** A read of the transaction. Only the first end() counts. */
    public static final class Use {
        private final AcidTransaction transaction;
        private boolean hasEnded;

        private Use(AcidTransaction transaction) {
            this.transaction = transaction;
        }

        /** Ends the use when "reader" is garbage, if nothing else has. */
        public Use atMostAsLongAs(Object reader) {
            CLEANER.register(reader, () -> Heartbeats.later(this::end));
            return this;
        }

        /** The execution of this use is over, and with it a statement whose transaction Spark does not end. */
        public void executionEnded() {
            if (transaction.commitsItself) transaction.close();
        }

        public void end() {
            synchronized (transaction) {
                if (hasEnded) return;
                hasEnded = true;
                transaction.leave();
            }
        }
    }

    /** Spark stops: end all readers. */
    public static void endReaders() {
        Heartbeats.releaseReaders();
    }

    private void leave() {
        if (--uses > 0 || !isReader || lease == null) return;
        Lease ended = lease;
        lease = null;
        txns = null;
        writeIds.clear();
        locked.clear();
        ended.release();
    }

    public synchronized boolean hasEnded() {
        return hasEnded;
    }

    /** Note that the statement reads a table ("db.table"). */
    public synchronized void read(String table) {
        reads.add(table);
    }

    /** Note that the statement writes a table. "partition": the name of the only partition that it writes, or null. */
    public synchronized void write(String table, WriteKind kind, String partition) {
        if (isReader) throw new IllegalStateException("A reader writes nothing");
        writes.add(new Write(table, kind, partition));
    }

    public synchronized boolean writes() {
        return !writes.isEmpty();
    }

    public synchronized boolean hasBegun() {
        return lease != null;
    }

    /** The transaction's id, which never changes. The first call opens it and takes the locks. */
    public synchronized long id() {
        lock();
        return open().txn;
    }

    private Lease open() {
        if (lease == null) begin();
        lease.requireOpen();
        return lease;
    }

    /** The snapshot over all tables that the statement reads. The first call takes the locks. */
    public synchronized Snapshot snapshot() {
        lock();
        List<String> wanted = new ArrayList<>(reads);
        wanted.removeAll(writeIds.keySet());
        if (!wanted.isEmpty() || txns == null) {
            Map<String, Object> arguments = new HashMap<>(Map.of("txn", open().txn, "tables", wanted));
            if (txns != null) arguments.put("txns", txns);  // a table that was added later has the same snapshot
            JsonNode answer = planner.call("snapshot", arguments);
            if (txns == null) txns = answer.path("txns").asText();
            answer.path("write_ids").properties().forEach(ids -> writeIds.put(ids.getKey(), ids.getValue().asText()));
        }
        return new Snapshot(txns, Map.copyOf(writeIds));
    }

    /** Take the locks for the tables noted by read and write, as far as they are not held yet. */
    public synchronized void lock() {
        List<String> ofReads = new ArrayList<>();
        List<Map<String, Object>> ofWrites = new ArrayList<>();
        for (String table : reads) if (!locked.contains(table)) ofReads.add(table);
        for (Write write : writes) {
            if (locked.contains(write)) continue;
            Map<String, Object> argument = new HashMap<>(Map.of("table", write.table, "kind", write.kind.name()));
            argument.put("partition", write.partition);
            ofWrites.add(argument);
        }
        if (ofReads.isEmpty() && ofWrites.isEmpty()) return;
        Map<String, Object> arguments = new HashMap<>(opening());
        arguments.put("txn", open().txn);
        arguments.put("reads", ofReads);
        arguments.put("writes", ofWrites);
        arguments.put("wait_s", LOCK_WAIT_SECONDS);
        if (txns != null) arguments.put("txns", txns);
        else if (locked.isEmpty()) arguments.put("reopen", opening());
        JsonNode answer = planner.call("lock", arguments);
        isVouched &= answer.path("vouched").asBoolean(false);
        if (answer.path("txn").asLong(lease.txn) != lease.txn) adopt(answer.path("txn").asLong(), lease);
        locked.addAll(reads);
        locked.addAll(writes);
    }

    /** The next statement id, from 0 on: each write of a table has its own. */
    public synchronized int nextStatement() {
        return statements++;
    }

    /** "action" runs when the transaction is undone: it removes what was written. */
    public synchronized void whenUndone(Runnable action) {
        undo.add(action);
    }

    /** Whether it commits by itself, because Spark ends no transaction here. */
    public boolean commitsItself() {
        return commitsItself;
    }

    /** The statement has written everything. Where Spark has no transactions, this commits. */
    public void statementWritten() {
        if (commitsItself) commit();
    }

    /** It writes a batch of a streaming query, which the table remembers by the commit. */
    public synchronized void brings(StreamBatch written) {
        batch = written;
    }

    /** After an error the commit may have happened: an abort decides that, and what is aborted is undone. */
    public synchronized void commit() {
        if (hasEnded) return;
        hasEnded = true;
        if (lease == null) return;
        try {
            lease.commit(isVouched, batch);
        } catch (AcidException error) {
            try {
                undoIfAborted(lease);
                if (batch != null && error.is("AlreadyExistsError") && batch.isThere(planner)) return;  // of a quicker run
            } catch (AcidException | IllegalStateException other) {
                error.addSuppressed(other);
            }
            throw error;
        }
        undo.clear();
    }

    /** Whether nothing that it wrote counts: false when it is committed, or may be. It may be called more than once. */
    public synchronized boolean abort() {
        hasEnded = true;
        return lease == null || undoIfAborted(lease);
    }

    /** End it: abort it where it was neither committed nor aborted. */
    public synchronized void close() {
        if (hasEnded) return;
        hasEnded = true;
        if (lease == null) return;
        try {
            undoIfAborted(lease);
        } catch (AcidException error) {
            // it expires, and the Cleaner removes what it wrote
        }
    }

    private boolean undoIfAborted(Lease lease) {
        boolean isAborted = lease.abort();
        if (isAborted) {
            List<Runnable> todo = List.copyOf(undo);
            undo.clear();
            for (Runnable action : todo) action.run();
        }
        return isAborted;
    }

    private void begin() {
        if (hasEnded) throw new IllegalStateException("The transaction of this statement is over");
        JsonNode answer = planner.call("begin", opening());
        keep(new Lease(planner, answer.path("txn").asLong(), isReader, answer.path("timeout_s").asDouble(300)));
    }

    /** The planner has opened another transaction in the place of this, which waited for its locks: see its call "lock". */
    private void adopt(long txn, Lease before) {
        before.forget();
        keep(new Lease(planner, txn, isReader, before.timeoutSeconds));
    }

    private void keep(Lease opened) {
        lease = opened;
        Heartbeats.keep(opened);
        if (!isReader) CLEANER.register(this, () -> Heartbeats.later(() -> abandon(opened)));
    }

    private Map<String, Object> opening() {
        Map<String, Object> opening = new HashMap<>(caller());
        opening.put("kind", isReader ? "READ_ONLY" : "DEFAULT");
        opening.put("statement", statement);
        return opening;
    }

    /** Who calls the planner. */
    public static Map<String, String> caller() {
        return Map.of("user", user(), "host", host(), "agent", agent());
    }

    /** Static, and without "this": what the cleaner runs must not keep what it waits for. */
    private static void abandon(Lease lease) {
        if (lease.isOver()) return;
        try {
            lease.abort();
        } catch (AcidException error) {
            // it expires
        }
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
