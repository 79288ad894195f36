package transactionmetastore.spark.read;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.stream.Stream;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.expressions.FieldReference;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.read.colstats.ColumnStatistics;
import org.apache.spark.sql.types.AtomicType;
import org.apache.spark.sql.types.BinaryType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import transactionmetastore.spark.table.PartitionKeys;

/**
 * The planner's statistics of columns, in the form of Spark's cost-based optimizer, which estimates how many rows pass a
 * filter or a join.
 */
record ColumnEstimates(JsonNode known) {
    private record Estimate(
            OptionalLong distinctCount, OptionalLong nullCount, Optional<Object> min, Optional<Object> max, OptionalLong avgLen,
            OptionalLong maxLen) implements ColumnStatistics {}

    /** Returns the columns that may have statistics. */
    static List<String> named(StructType wanted) {
        return Stream.of(wanted.fields()).filter(field -> field.dataType() instanceof AtomicType).map(StructField::name).toList();
    }

    /** Returns the statistics of a scan's columns, for so many rows. */
    Map<NamedReference, ColumnStatistics> of(StructType wanted, long rows) {
        Map<NamedReference, ColumnStatistics> all = new HashMap<>();
        for (StructField field : wanted.fields()) {
            JsonNode column = known.path(field.name());
            Estimate estimate = column.isMissingNode() ? null : estimate(column, field, rows);
            if (estimate != null) all.put(FieldReference.column(field.name()), estimate);
        }
        return all;
    }

    /**
     * Returns the statistics of a column; null if they would mislead. Spark takes a column whose type has a range, but
     * whose statistics have none, for a column of NULLs alone. Statistics may be of more rows than are read, so NULLs are
     * scaled in proportion.
     */
    private static Estimate estimate(JsonNode column, StructField field, long rows) {
        long nulls = column.path("nulls").asLong(), of = column.path("rows").asLong();
        if (of > 0) nulls = Math.round((double) nulls / of * rows);
        nulls = Math.min(nulls, rows);
        long distinct = Math.min(column.path("distinct").asLong(rows), rows - nulls);
        InternalRow bounds = bounds(column, field.dataType());
        if (bounds == null) return null;
        boolean hasRange = !(field.dataType() instanceof StringType || field.dataType() instanceof BinaryType);
        if (hasRange && distinct > 0 && bounds.anyNull()) return null;
        return new Estimate(
            OptionalLong.of(distinct), OptionalLong.of(nulls), bound(bounds, 0, field), bound(bounds, 1, field),
            length(column.path("average_length")), length(column.path("longest")));
    }

    /** Returns the lowest and the highest value; null if they are no values of the type. */
    private static InternalRow bounds(JsonNode column, DataType type) {
        String low = column.path("low").textValue(), high = column.path("high").textValue();
        try {
            return PartitionKeys.typed(new StructType().add("low", type).add("high", type), Arrays.asList(low, high));
        } catch (RuntimeException error) {
            return null;
        }
    }

    private static Optional<Object> bound(InternalRow bounds, int place, StructField field) {
        return bounds.isNullAt(place) ? Optional.empty() : Optional.of(bounds.get(place, field.dataType()));
    }

    private static OptionalLong length(JsonNode value) {
        return value.isNumber() ? OptionalLong.of((long) Math.ceil(value.asDouble())) : OptionalLong.empty();
    }
}
