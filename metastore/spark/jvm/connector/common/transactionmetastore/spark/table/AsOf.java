package transactionmetastore.spark.table;

import java.util.Map;
import transactionmetastore.spark.planner.AcidException;

/** A point in a table's past: a write id or a time; the other is null. */
public record AsOf(Long writeId, Long timestampMs) {
    public static AsOf version(String table, String version) {
        try {
            return new AsOf(Long.valueOf(version), null);
        } catch (NumberFormatException error) {
            throw new AcidException("INVALID_VERSION", "The version '" + version + "' of the table " + table
                + " is no write id: give a number, as in VERSION AS OF 5.", error);
        }
    }

    public static AsOf timestamp(long micros) {
        return new AsOf(null, Math.floorDiv(micros, 1000L));
    }

    /** Returns the point in the planner's form. */
    public Map<String, Long> argument() {
        return writeId != null ? Map.of("write_id", writeId) : Map.of("timestamp_ms", timestampMs);
    }

    @Override
    public String toString() {
        return writeId != null ? "write id " + writeId : "time " + timestampMs + " ms";
    }
}
