package transactionmetastore.spark.stream;

import java.util.Map;
import transactionmetastore.spark.table.PlannedRange;

/**
 * The rows that a stream's batch reads: those of write ids above "after" up to "upTo"; with "after" -1 the whole table at
 * "upTo".
 */
public record StreamRange(long after, long upTo, boolean skipsChanges) implements PlannedRange {
    static final long NOTHING_YET = -1;

    @Override
    public String call() {
        return after == NOTHING_YET ? "plan" : "appended";
    }

    @Override
    public void addTo(Map<String, Object> arguments) {
        if (after == NOTHING_YET) {
            arguments.put("as_of", Map.of("write_id", upTo));
        } else {
            arguments.put("after", after);
            arguments.put("up_to", upTo);
            arguments.put("skips_changes", skipsChanges);
        }
    }
}
