package transactionmetastore.spark.txn;

import com.fasterxml.jackson.databind.JsonNode;
import java.lang.ref.Cleaner;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import transactionmetastore.spark.planner.AcidException;
import transactionmetastore.spark.planner.PlannerClient;

/**
 * A transaction's state in the metastore: its id, its locks, its snapshot, and its own writes.
 *
 * Rules kept here. Nothing is opened before it is needed. Locks come before the snapshot, which is one for all tables.
 * Reads see the transaction's own writes. A thread that notes a read, or asks for the state, never waits for a thread that
 * calls the planner: such a call may wait for a lock of the metastore as long as another statement holds it.
 */
final class MetastoreTxn {
    private static final Cleaner CLEANER = Cleaner.create();
    private static final int LOCK_WAIT_SECONDS = 300;

    private record Write(String table, WriteKind kind, String partition) {}

    final PlannerClient planner;
    final boolean isReader;
    private final String statement;
    private final boolean readsMore;
    private final Set<String> reads = Collections.synchronizedSet(new LinkedHashSet<>());
    private final Set<Write> writes = new LinkedHashSet<>();
    private final Set<Object> locked = new LinkedHashSet<>();
    private final Set<String> declared = new LinkedHashSet<>();
    private final Map<String, String> writeIds = new HashMap<>();
    private final Map<String, Long> ownWriteIds = new HashMap<>();
    private final Set<String> overwritten = new HashSet<>();
    private final WrittenRows rows = new WrittenRows();
    private final List<Map<String, Object>> replaced = new ArrayList<>();
    private volatile Lease lease;
    private String txns;
    private int statements;
    private volatile boolean isOver;
    private boolean isVouched = true;
    private boolean hasSaid, isPast;

    /**
     * Creates a transaction. "readsMore": whether tables may be read that are unknown when the snapshot is taken; the
     * Cleaner then waits with all tables. "hasSaid": whether the metastore knows what the transaction reads. "isPast":
     * whether the snapshot is of an earlier transaction.
     */
    MetastoreTxn(PlannerClient planner, boolean isReader, String statement, boolean readsMore) {
        this.planner = planner;
        this.isReader = isReader;
        this.statement = statement;
        this.readsMore = readsMore;
    }

    void read(String table) {
        reads.add(table);
    }

    List<String> reads() {
        return List.of(reads.toArray(new String[0]));
    }

    /** Notes that a table is written. "partition": the name of the only partition that is written, or null. */
    synchronized void write(String table, WriteKind kind, String partition) {
        writes.add(new Write(table, kind, partition));
    }

    boolean hasBegun() {
        return lease != null;
    }

    boolean isOver() {
        return isOver;
    }

    /** Returns the transaction's id. The first call opens the transaction and takes the locks. */
    synchronized long id() {
        lock();
        return open().txn;
    }

    /**
     * Returns the snapshot over all tables noted by read. "table": the one that is wanted now; null for none. The first
     * call takes the locks.
     */
    synchronized Snapshot snapshot(String table) {
        if (table != null) reads.add(table);
        long txn = id();
        if (txns == null || table != null && !writeIds.containsKey(table)) {
            List<String> wanted = new ArrayList<>(reads());
            wanted.retainAll(locked);  // tables noted since then are locked first
            wanted.removeAll(writeIds.keySet());
            Map<String, Object> arguments = new HashMap<>(Map.of("txn", txn, "tables", wanted));
            if (txns != null) arguments.put("txns", txns);  // a table that was added later has the same snapshot
            if (!readsMore) arguments.put("reads", used());
            if (hasSaid) arguments.put("said", true);
            JsonNode answer;
            try {
                answer = planner.call("snapshot", arguments);
            } catch (AcidException refusal) {
                reads.remove(table);  // the refusal concerns this table only
                throw refusal;
            }
            hasSaid |= answer.path("said").asBoolean(false);
            if (txns == null) txns = answer.path("txns").asText();
            answer.path("write_ids").properties().forEach(ids -> writeIds.put(ids.getKey(), ids.getValue().asText()));
        }
        return new Snapshot(txns, Map.copyOf(writeIds), Map.copyOf(ownWriteIds), isPast);
    }

    private Set<String> used() {
        Set<String> used = new LinkedHashSet<>(reads());
        for (Write write : writes) used.add(write.table);
        return used;
    }

    /** Takes the locks for the tables noted by read and write, as far as they are not held yet. */
    synchronized void lock() {
        List<String> noted = reads();  // more tables may be noted during the call to the planner
        List<String> ofReads = new ArrayList<>();
        List<Map<String, Object>> ofWrites = new ArrayList<>();
        for (String table : noted) if (!locked.contains(table)) ofReads.add(table);
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
        for (Map<String, Object> write : ofWrites) declared.add((String) write.get("table"));
        JsonNode answer = planner.call("lock", arguments);
        isVouched &= answer.path("vouched").asBoolean(false);
        if (answer.path("txn").asLong(lease.txn) != lease.txn) adopt(answer.path("txn").asLong(), lease);
        locked.addAll(noted);
        locked.addAll(writes);
    }

    /** Returns the next statement id, from 0 on: each write of a table has its own. */
    synchronized int nextStatement() {
        return statements++;
    }

    /** Reserves further statement ids after the last statement's own. */
    synchronized void hasUsed(int further) {
        statements += further;
    }

    /** Notes the write id by which the transaction writes a table. */
    synchronized void hasWriteId(String table, long writeId) {
        ownWriteIds.put(table, writeId);
    }

    /** Returns the write id by which the transaction has written a table; null if it has not. */
    synchronized Long ownWriteId(String table) {
        return ownWriteIds.get(table);
    }

    /** Returns the tables that the transaction has written ("db.table"). */
    synchronized Set<String> written() {
        return Set.copyOf(ownWriteIds.keySet());
    }

    /** Notes a new base in a location: it hides later writes of the transaction there. */
    synchronized void overwrites(String location) {
        overwritten.add(location);
    }

    synchronized void overwritesNoMore(String location) {
        overwritten.remove(location);
    }

    synchronized boolean hasOverwritten(String location) {
        return overwritten.contains(location);
    }

    /** Notes a table's new definition, which the commit sets. */
    synchronized void replaces(Map<String, Object> definition) {
        replaced.add(definition);
    }

    /** Adds rows that a statement has written. */
    synchronized void count(WrittenRows written) {
        rows.add(written);
    }

    /** Subtracts rows of a statement that was undone. */
    synchronized void countNot(WrittenRows written) {
        rows.remove(written);
    }

    /** Commits the transaction, if anything was opened. "batch": the batch to store with the table, or null. */
    synchronized void commit(StreamBatch batch) {
        isOver = true;
        if (lease == null) return;
        declared.removeAll(ownWriteIds.keySet());
        lease.commit(isVouched, batch, rows.argument(), replaced, declared);
    }

    /** Aborts the transaction. Returns true if none of its writes count; false when it is committed, or may be. */
    synchronized boolean abort() {
        isOver = true;
        return lease == null || lease.abort();
    }

    /** Aborts before the owner asks for the end. Returns true if none of the writes count. */
    synchronized boolean giveUp() {
        return lease == null || lease.abort();
    }

    /**
     * Detaches the lease of a reader without uses. The caller ends the returned lease, if any, while no lock is held. The
     * next use opens another transaction, which reads the same snapshot.
     */
    synchronized Lease left() {
        Lease ended = lease;
        lease = null;
        txns = null;
        hasSaid = false;
        isPast = !writeIds.isEmpty();
        locked.clear();
        return ended;
    }

    private Lease open() {
        if (isOver) throw new AcidException("NO_TRANSACTION", "The transaction that this statement began in is over: run it anew.");
        if (lease == null) begin();
        lease.requireOpen();
        return lease;
    }

    private void begin() {
        JsonNode answer = planner.call("begin", opening());
        keep(new Lease(planner, answer.path("txn").asLong(), isReader, isOfBlock(), answer.path("timeout_s").asDouble(300)));
    }

    /**
     * Adopts a transaction that the planner has opened in place of this one, which waited for its locks: see the planner's
     * call "lock".
     */
    private void adopt(long txn, Lease before) {
        before.forget();
        keep(new Lease(planner, txn, isReader, isOfBlock(), before.timeoutSeconds));
    }

    private void keep(Lease opened) {
        lease = opened;
        Heartbeats.keep(opened);
        if (!isReader) CLEANER.register(this, () -> Heartbeats.later(opened::abandon));
    }

    private boolean isOfBlock() {
        return readsMore && !isReader;
    }

    private Map<String, Object> opening() {
        Map<String, Object> opening = new HashMap<>(AcidTransaction.caller());
        opening.put("kind", isReader ? "READ_ONLY" : "DEFAULT");
        opening.put("statement", statement);
        return opening;
    }
}
