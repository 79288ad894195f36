package transactionmetastore.spark.txn;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/** The numbers of rows that a transaction has inserted into tables, and deleted from them. An update counts in both. */
final class WrittenRows {
    private record Count(long inserted, long deleted) {
        Count plus(Count other) {
            return new Count(inserted + other.inserted, deleted + other.deleted);
        }
    }

    private final Map<String, Count> tables = new TreeMap<>();

    void add(String table, long inserted, long deleted) {
        tables.merge(table, new Count(inserted, deleted), Count::plus);
    }

    void add(WrittenRows others) {
        others.tables.forEach((table, count) -> tables.merge(table, count, Count::plus));
    }

    void remove(WrittenRows others) {
        others.tables.forEach((table, count) -> add(table, -count.inserted, -count.deleted));
    }

    /** Returns the numbers in the planner's form. */
    List<Map<String, Object>> argument() {
        List<Map<String, Object>> argument = new ArrayList<>();
        tables.forEach((table, count) ->
            argument.add(Map.of("table", table, "inserted", count.inserted, "deleted", count.deleted)));
        return argument;
    }
}
