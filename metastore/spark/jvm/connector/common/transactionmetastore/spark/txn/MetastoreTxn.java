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
 * What a transaction has in the metastore: its id, its locks, its snapshot, and what it has written itself.
 *
 * Rules kept here. Nothing is opened before somebody needs it. Locks come before the snapshot, which is one of all tables.
 * What was written in it counts in what it reads. Who notes a read, or asks how it stands, waits for nobody who calls the planner:
 * that may wait for a lock of the metastore as long as another statement has it.
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
     * "readsMore": whether tables may be read in it that nobody knows when its snapshot is taken. The Cleaner waits for such a one with
     * all tables. "hasSaid": whether the metastore knows what it reads. "isPast": whether the snapshot is of a transaction before this.
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

    /** "partition": the name of the only partition that it writes, or null. */
    synchronized void write(String table, WriteKind kind, String partition) {
        writes.add(new Write(table, kind, partition));
    }

    boolean hasBegun() {
        return lease != null;
    }

    boolean isOver() {
        return isOver;
    }

    /** The transaction's id. The first call opens it and takes the locks. */
    synchronized long id() {
        lock();
        return open().txn;
    }

    /**
     * The snapshot over all tables noted by read, of which one is wanted now; "table": null for none. The first call takes the locks.
     */
    synchronized Snapshot snapshot(String table) {
        if (table != null) reads.add(table);
        long txn = id();
        if (txns == null || table != null && !writeIds.containsKey(table)) {
            List<String> wanted = new ArrayList<>(reads());
            wanted.retainAll(locked);  // what was noted since is locked first
            wanted.removeAll(writeIds.keySet());
            Map<String, Object> arguments = new HashMap<>(Map.of("txn", txn, "tables", wanted));
            if (txns != null) arguments.put("txns", txns);  // a table that was added later has the same snapshot
            if (!readsMore) arguments.put("reads", used());
            if (hasSaid) arguments.put("said", true);
            JsonNode answer;
            try {
                answer = planner.call("snapshot", arguments);
            } catch (AcidException refusal) {
                reads.remove(table);  // others are not refused for it
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

    /** Take the locks for the tables noted by read and write, as far as they are not held yet. */
    synchronized void lock() {
        List<String> noted = reads();  // more may be noted while the planner is asked
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

    /** The next statement id, from 0 on: each write of a table has its own. */
    synchronized int nextStatement() {
        return statements++;
    }

    /** The last statement also uses the statement ids after its own. */
    synchronized void hasUsed(int further) {
        statements += further;
    }

    /** Note the write id by which it writes a table. */
    synchronized void hasWriteId(String table, long writeId) {
        ownWriteIds.put(table, writeId);
    }

    /** The write id by which it has written a table; null where it has not. */
    synchronized Long ownWriteId(String table) {
        return ownWriteIds.get(table);
    }

    /** The tables that it has written ("db.table"). */
    synchronized Set<String> written() {
        return Set.copyOf(ownWriteIds.keySet());
    }

    /** Note its base in a location, which hides what it writes there later. */
    synchronized void overwrites(String location) {
        overwritten.add(location);
    }

    synchronized void overwritesNoMore(String location) {
        overwritten.remove(location);
    }

    synchronized boolean hasOverwritten(String location) {
        return overwritten.contains(location);
    }

    /** The commit changes the definition of a table. */
    synchronized void replaces(Map<String, Object> definition) {
        replaced.add(definition);
    }

    /** Rows that a statement has written, and that stay. */
    synchronized void count(WrittenRows written) {
        rows.add(written);
    }

    /** Rows that a statement had written, and that are undone. */
    synchronized void countNot(WrittenRows written) {
        rows.remove(written);
    }

    /** Commit, if anything was opened. "batch": what the table remembers by the commit, or null. */
    synchronized void commit(StreamBatch batch) {
        isOver = true;
        if (lease == null) return;
        declared.removeAll(ownWriteIds.keySet());
        lease.commit(isVouched, batch, rows.argument(), replaced, declared);
    }

    /** Whether nothing that it wrote counts: false when it is committed, or may be. */
    synchronized boolean abort() {
        isOver = true;
        return lease == null || lease.abort();
    }

    /** Abort it before its end is asked for. Returns whether nothing of it counts. */
    synchronized boolean giveUp() {
        return lease == null || lease.abort();
    }

    /**
     * Of a reader that nobody uses: the caller ends what this returns, if anything, while no lock is held. The next use opens another
     * transaction, which reads what this one has read.
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

    /** The planner has opened another transaction in the place of this, which waited for its locks: see its call "lock". */
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
