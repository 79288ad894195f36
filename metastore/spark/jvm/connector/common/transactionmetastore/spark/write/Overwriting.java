package transactionmetastore.spark.write;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.Literal;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.types.StructType;
import transactionmetastore.spark.files.Messages;
import transactionmetastore.spark.internals.Rows;
import transactionmetastore.spark.planner.AcidException;
import transactionmetastore.spark.table.PartitionKeys;
import transactionmetastore.spark.table.TableShape;

/**
 * The rows that an INSERT OVERWRITE replaces, as in Hive: those of a table without partitions; of the partition whose keys
 * all have a value in PARTITION (...), even if it gets no rows; else of the partitions that get rows. A write by condition
 * replaces all rows that meet it.
 *
 * "named": the values in PARTITION (...), or in the condition, as texts by key; "isWhole": all rows of a table, with or
 * without partitions; "isOfAllNamed": all rows with the values of "named"; "emptied": the keys of partitions that are
 * emptied, as TRUNCATE names them.
 */
record Overwriting(Map<String, String> named, boolean isWhole, boolean isOfAllNamed, List<String> emptied) {
    static final Overwriting ALL_THAT_GET_ROWS = new Overwriting(Map.of(), false, false, List.of());
    static final Overwriting EVERYTHING = new Overwriting(Map.of(), true, false, List.of());

    static Overwriting of(List<String> emptied) {
        return new Overwriting(Map.of(), false, false, emptied);
    }

    /** Returns the values that a condition gives partition keys; null if it says anything else. */
    static Overwriting of(Predicate[] conditions, StructType keys, String zone, boolean isOfAllNamed) {
        Map<String, String> named = new HashMap<>();
        for (Predicate condition : conditions) {
            if (condition.name().equals("ALWAYS_TRUE")) continue;
            Expression[] sides = condition.children();
            boolean isEquality = condition.name().equals("=") || condition.name().equals("<=>");
            if (!isEquality && !condition.name().equals("IS_NULL")) return null;
            if (!(sides[0] instanceof NamedReference column) || column.fieldNames().length != 1) return null;
            int key = keys.getFieldIndex(column.fieldNames()[0]).isEmpty() ? -1 : keys.fieldIndex(column.fieldNames()[0]);
            if (key < 0 || isEquality && !(sides[1] instanceof Literal<?>)) return null;
            Object value = isEquality ? ((Literal<?>) sides[1]).value() : null;
            if (isEquality && value != null && !((Literal<?>) sides[1]).dataType().sameType(keys.fields()[key].dataType())) {
                return null;
            }
            InternalRow row = Rows.of(value);
            StructType type = new StructType().add(keys.fields()[key]);
            named.put(keys.fields()[key].name(), (String) Messages.list(new PartitionKeys(type, 0, zone).of(row)).get(0));
        }
        return new Overwriting(named, false, isOfAllNamed, List.of());
    }

    /** Returns the replaced rows in the planner's form. */
    Object argument(TableShape table) {
        if (isWhole || table.keys().length() == 0) return "all";
        if (!emptied.isEmpty()) return Map.of("keys", emptied);
        if (named.size() < table.keys().length()) return isOfAllNamed ? Map.of("values", named) : "dynamic";
        List<String> values = new ArrayList<>();
        for (String key : table.keys().fieldNames()) values.add(named.get(key));
        return Map.of("key", Messages.text(values));
    }

    /** Refuses rows of other partitions than the named one. */
    void require(TableShape table, List<WrittenFile> files) {
        List<String> keys = Arrays.asList(table.keys().fieldNames());
        for (WrittenFile file : files) {
            List<?> values = file.key() == null ? List.of() : Messages.list(file.key());
            for (int at = 0; at < values.size(); ++at) {
                String key = keys.get(at);
                if (named.containsKey(key) && !java.util.Objects.equals(named.get(key), values.get(at))) {
                    throw new AcidException("InvalidOperationError", file.rows() + " rows for " + table.name() + " are of "
                        + key + " = " + values.get(at) + ", and only PARTITION (" + key + " = " + named.get(key)
                        + ") is overwritten. Leave them out, or name no partition.");
                }
            }
        }
    }
}
