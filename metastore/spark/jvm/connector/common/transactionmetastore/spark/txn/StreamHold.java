package transactionmetastore.spark.txn;

import com.fasterxml.jackson.databind.JsonNode;
import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import java.util.function.LongSupplier;
import transactionmetastore.spark.planner.PlannerClient;

/**
 * Keeps what a stream has yet to read of a table from the Cleaner, between its batches too: a read transaction that is always open.
 *
 * Rule: the Cleaner leaves whatever a compaction replaced that was committed while the transaction was open. Compactions before it have
 * only seen write ids up to its mark. So another transaction takes its place once the stream has come to that one's mark: the
 * Cleaner waits for a stream no longer than the stream lags behind. Like any transaction that nobody heartbeats it expires.
 */
public final class StreamHold {
    private final PlannerClient planner;
    private final String statement;
    private Lease held, next;
    private long mark, openedAt;

    public StreamHold(PlannerClient planner, String statement) {
        this.planner = planner;
        this.statement = statement;
    }

    /** The stream has read up to a write id. "settled": up to which it could read now. */
    public synchronized void advance(long position, LongSupplier settled) {
        if (held == null || held.isOver()) {
            held = next != null && !next.isOver() ? next : opened();
            next = null;
        }
        Duration age = Duration.ofNanos(System.nanoTime() - openedAt);
        if (next == null && age.compareTo(held.every) >= 0) {
            next = opened();
            mark = settled.getAsLong();
        }
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
        opening.put("statement", statement);
        JsonNode answer = planner.call("begin", opening);
        Reader reader = Reader.ofExecutions(AcidTransaction.session());
        Lease lease = new Lease(planner, answer.path("txn").asLong(), reader, answer.path("timeout_s").asDouble(300));
        Heartbeats.keep(lease);
        openedAt = System.nanoTime();
        return lease;
    }
}
