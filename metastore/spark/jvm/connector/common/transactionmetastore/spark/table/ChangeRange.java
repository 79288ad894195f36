package transactionmetastore.spark.table;

import java.util.Map;

/**
 * The changes of the write ids from "first" to "last"; or, where "first" is null, those that were committed behind "afterMs", up to
 * "untilMs". Without an end: up to now.
 */
public record ChangeRange(Long first, Long last, Long afterMs, Long untilMs) implements PlannedRange {
    /** For a batch of a stream. */
    public ChangeRange of(long from, long to) {
        return new ChangeRange(from, to, null, null);
    }

    @Override
    public String call() {
        return "changes";
    }

    @Override
    public void addTo(Map<String, Object> arguments) {
        arguments.put("first", first);
        arguments.put("last", last);
        arguments.put("after_ms", afterMs);
        arguments.put("until_ms", untilMs);
    }

    @Override
    public String toString() {
        return first != null ? "changes from write id " + first + (last == null ? "" : " to " + last)
            : "changes behind " + afterMs + " ms" + (untilMs == null ? "" : " up to " + untilMs + " ms");
    }
}
