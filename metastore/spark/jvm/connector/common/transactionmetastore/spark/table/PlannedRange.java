package transactionmetastore.spark.table;

import java.util.Map;

/** Which of a table's rows a scan reads, where these are not all that its snapshot sees. */
public interface PlannedRange {
    /** The planner's call that plans it. */
    String call();

    void addTo(Map<String, Object> arguments);
}
