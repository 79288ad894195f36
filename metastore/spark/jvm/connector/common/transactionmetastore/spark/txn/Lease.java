package transactionmetastore.spark.txn;

import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import transactionmetastore.spark.planner.AcidException;
import transactionmetastore.spark.planner.PlannerClient;

/**
 * An open transaction, kept alive by heartbeats until it is ended.
 *
 * It has no reference to a statement, since Heartbeats holds it. A transaction without heartbeats, as that of a killed
 * driver, expires in the service.
 */
final class Lease {
    private static final Duration LEAST_PATIENCE = Duration.ofSeconds(1), RELEASE_PATIENCE = Duration.ofSeconds(10);

    final PlannerClient planner;
    final long txn;
    final boolean isReader;
    /** True for a block, which lives as long as its session; a session may end without a call. */
    final boolean isOfBlock;
    final double timeoutSeconds;
    final Duration every;
    private boolean isOver;
    private AcidException lost;

    Lease(PlannerClient planner, long txn, boolean isReader, boolean isOfBlock, double timeoutSeconds) {
        this.planner = planner;
        this.txn = txn;
        this.isReader = isReader;
        this.isOfBlock = isOfBlock;
        this.timeoutSeconds = timeoutSeconds;
        this.every = Duration.ofMillis(Math.max(100L, (long) (timeoutSeconds * 1000 / 3)));
    }

    void heartbeat() {
        if (isOver()) return;
        try {
            planner.call("heartbeat", Map.of("txn", txn), every.compareTo(LEAST_PATIENCE) < 0 ? LEAST_PATIENCE : every);
        } catch (AcidException error) {
            if (PlannerClient.saysThatItIsOver(error)) lose(error);
        }
    }

    synchronized boolean isOver() {
        return isOver || lost != null;
    }

    private synchronized void lose(AcidException error) {
        if (!isOver) lost = error;
    }

    /** Throws the error that ended the transaction early, if any. */
    synchronized void requireOpen() {
        if (lost != null) throw lost;
    }

    /** Returns true if this call was the first to end the transaction. */
    private synchronized boolean end() {
        boolean isFirst = !isOver;
        isOver = true;
        return isFirst;
    }

    /**
     * Commits the transaction. "isVouched": the planner's answer to the last locks. "batch": the batch to store with the
     * table, or null; "replaced": new definitions; "unwritten": tables that are locked for writing but were not written.
     */
    void commit(
            boolean isVouched, StreamBatch batch, List<Map<String, Object>> rows, List<Map<String, Object>> replaced, Set<String> unwritten) {
        requireOpen();
        Map<String, Object> arguments = new HashMap<>(Map.of("txn", txn, "kind", "DEFAULT", "vouched", isVouched));
        if (batch != null) arguments.put("batch", batch.argument());
        if (!rows.isEmpty()) arguments.put("rows", rows);
        if (!replaced.isEmpty()) arguments.put("replaces", replaced);
        if (!unwritten.isEmpty()) arguments.put("unwritten", unwritten);
        if (end()) planner.call("commit", arguments);
        Heartbeats.forget(this);
    }

    /** Forgets the transaction, since another one has taken its place. */
    void forget() {
        end();
        Heartbeats.forget(this);
    }

    /**
     * Aborts the transaction. Returns true if it is aborted now, or was before. Otherwise it may be committed, and none of
     * its files may be removed.
     */
    boolean abort() {
        end();
        Heartbeats.forget(this);
        return planner.call("abort", Map.of("txn", txn)).path("aborted").asBoolean(false);
    }

    /** Aborts a transaction that has no owner any more, or should have none. */
    void abandon() {
        if (isOver()) return;
        lose(new AcidException("TxnAbortedError", "Spark was stopped before the end of this transaction: nothing of it is committed."));
        try {
            abort();
        } catch (AcidException error) {
            // the transaction expires
        }
    }

    /** Ends a transaction that has only read. A failure does no harm, since the transaction expires. */
    void release() {
        if (!end()) return;
        Heartbeats.forget(this);
        try {
            planner.call("commit", Map.of("txn", txn, "kind", "READ_ONLY"), RELEASE_PATIENCE);
        } catch (AcidException error) {
            // the transaction expires
        }
    }
}
