package transactionmetastore.spark.table;

import java.util.Map;

/**
 * The range of a read of changes: the write ids from "first" to "last"; or, if "first" is null, those committed after
 * "afterMs", up to "untilMs". Without an end it reaches to the present.
 */
public record ChangeRange(Long first, Long last, Long afterMs, Long untilMs) implements PlannedRange {
    /** Returns the range for a batch of a stream. */
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
