package transactionmetastore.spark.txn;

import com.fasterxml.jackson.databind.JsonNode;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.LongSupplier;
import transactionmetastore.spark.planner.AcidException;
import transactionmetastore.spark.planner.PlannerClient;

/**
 * A hold on a table's old files that a stream has yet to read, between its batches too: a read transaction that is always
 * open.
 *
 * Rule: the Cleaner keeps files that a compaction replaced while this transaction was open. Compactions from before it
 * cover only write ids up to its high watermark. When the stream has read up to that mark, a new transaction takes
 * over. So the Cleaner waits for this table only, and no longer than the stream lags behind. Like any transaction
 * without heartbeats, the hold expires.
 */
public final class StreamHold {
    private static final long UNKNOWN = Long.MAX_VALUE;

    private final PlannerClient planner;
    private final String table;
    private Lease held, next;
    private long mark, openedAt;

    /** Creates a hold. "table": the table that the stream reads ("db.table"). */
    public StreamHold(PlannerClient planner, String table) {
        this.planner = planner;
        this.table = table;
    }

    /**
     * Notes that the stream has read up to a write id. "settled": supplies the write id up to which the stream could read
     * now.
     */
    public synchronized void advance(long position, LongSupplier settled) {
        if (held == null || held.isOver()) {
            held = next != null && !next.isOver() ? next : opened();
            next = null;
        }
        if (next != null && next.isOver()) next = null;
        Duration age = Duration.ofNanos(System.nanoTime() - openedAt);
        if (next == null && age.compareTo(held.every) >= 0) {
            mark = UNKNOWN;
            next = opened();
        }
        if (next != null && mark == UNKNOWN) mark = settled.getAsLong();
        if (next == null || position < mark) return;
        held.release();
        held = next;
        next = null;
    }

    public synchronized void end() {
        if (held != null) held.release();
        if (next != null) next.release();
        held = null;
        next = null;
    }

    private Lease opened() {
        Map<String, Object> opening = new HashMap<>(AcidTransaction.caller());
        opening.put("kind", "READ_ONLY");
        opening.put("statement", "stream of " + table);
        JsonNode answer = planner.call("begin", opening);
        Lease lease = new Lease(planner, answer.path("txn").asLong(), true, false, answer.path("timeout_s").asDouble(300));
        Heartbeats.keep(lease);
        try {
            planner.call("snapshot", Map.of("txn", lease.txn, "tables", List.of(), "reads", List.of(table)));
        } catch (AcidException error) {
            lease.release();
            throw error;
        }
        openedAt = System.nanoTime();
        return lease;
    }
}
