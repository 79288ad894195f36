package transactionmetastore.spark.table;

import java.util.Map;

/** A part of a table's rows that a scan reads, instead of all rows of its snapshot. */
public interface PlannedRange {
    /** Returns the name of the planner's call that plans the range. */
    String call();

    void addTo(Map<String, Object> arguments);
}
