package transactionmetastore.spark.read;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.orc.ColumnStatistics;
import org.apache.orc.DateColumnStatistics;
import org.apache.orc.IntegerColumnStatistics;
import org.apache.orc.OrcFile;
import org.apache.orc.Reader;
import org.apache.orc.TypeDescription;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.aggregate.AggregateFunc;
import org.apache.spark.sql.connector.expressions.aggregate.Aggregation;
import org.apache.spark.sql.connector.expressions.aggregate.Count;
import org.apache.spark.sql.connector.expressions.aggregate.CountStar;
import org.apache.spark.sql.connector.expressions.aggregate.Max;
import org.apache.spark.sql.connector.expressions.aggregate.Min;
import org.apache.spark.sql.types.AtomicType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import transactionmetastore.spark.files.EventColumns;
import transactionmetastore.spark.internals.OrcTypes;
import transactionmetastore.spark.internals.Rows;

/**
 * The aggregates of whole partitions that footers answer: count(*), count of a column, min and max of integers and dates;
 * and of partition keys, which may group them.
 *
 * Rule: rows are read wherever a footer is not certain. Statistics of texts are cut short, those of floating point numbers
 * do not know NaN, those of timestamps depend on a zone. A file must have the column in the table's type, since values of
 * another type are converted row by row.
 */
final class FooterValues {
    private static final int READERS = 8;
    /** The first day of the Gregorian calendar, 1582-10-15. Before it ORC's writers use different calendars. */
    private static final long FIRST_GREGORIAN_DAY = -141427;
    private static final List<DataType> BOUNDED =
        List.of(DataTypes.ByteType, DataTypes.ShortType, DataTypes.IntegerType, DataTypes.LongType, DataTypes.DateType);

    private static final List<DataType> COMPARABLE = List.of(
        DataTypes.StringType, DataTypes.BooleanType, DataTypes.ByteType, DataTypes.ShortType, DataTypes.IntegerType, DataTypes.LongType,
        DataTypes.DateType, DataTypes.TimestampType);

    private enum Kind { ROWS, COUNT, MIN, MAX }

    /** An aggregate. "column": null for ROWS; "key": the position of the partition key, or -1. */
    private record Wanted(Kind kind, StructField column, int key) {
        boolean isOfFiles() {
            return kind != Kind.ROWS && key < 0;
        }

        StructField result() {
            return switch (kind) {
                case ROWS -> new StructField("count(*)", DataTypes.LongType, false, null);
                case COUNT -> new StructField("count(" + column.name() + ")", DataTypes.LongType, false, null);
                case MIN -> new StructField("min(" + column.name() + ")", column.dataType(), true, null);
                case MAX -> new StructField("max(" + column.name() + ")", column.dataType(), true, null);
            };
        }
    }

    /** A column's statistics in a file's footer. Without values the bounds mean nothing. */
    private record Bounds(long values, long least, long greatest) {}

    /** A directory with rows. "keys": the values of all partition keys. */
    private record Part(InternalRow keys, long rows, List<Bounds[]> files) {}

    private final StructType keys;
    private final List<Integer> groups;
    private final List<Wanted> wanted;

    private FooterValues(StructType keys, List<Integer> groups, List<Wanted> wanted) {
        this.keys = keys;
        this.groups = groups;
        this.wanted = wanted;
    }

    /** Returns the aggregates for a table with the columns "row" and "keys"; null if footers cannot answer one of them. */
    static FooterValues of(Aggregation aggregation, StructType row, StructType keys) {
        List<Integer> groups = new ArrayList<>();
        for (Expression group : aggregation.groupByExpressions()) {
            int key = key(group, keys);
            if (key < 0) return null;
            groups.add(key);
        }
        List<Wanted> all = new ArrayList<>();
        for (AggregateFunc function : aggregation.aggregateExpressions()) {
            Wanted one = wanted(function, row, keys);
            if (one == null) return null;
            all.add(one);
        }
        return all.isEmpty() && groups.isEmpty() ? null : new FooterValues(keys, groups, all);
    }

    private static Wanted wanted(AggregateFunc function, StructType row, StructType keys) {
        if (function instanceof CountStar) return new Wanted(Kind.ROWS, null, -1);
        if (function instanceof Min min) return bound(Kind.MIN, min.column(), row, keys);
        if (function instanceof Max max) return bound(Kind.MAX, max.column(), row, keys);
        if (!(function instanceof Count count) || count.isDistinct()) return null;
        int key = key(count.column(), keys);
        if (key >= 0) return new Wanted(Kind.COUNT, keys.fields()[key], key);
        StructField counted = column(count.column(), row);
        return counted != null && counted.dataType() instanceof AtomicType ? new Wanted(Kind.COUNT, counted, -1) : null;
    }

    private static Wanted bound(Kind kind, Expression of, StructType row, StructType keys) {
        int key = key(of, keys);
        if (key >= 0) return new Wanted(kind, keys.fields()[key], key);
        StructField column = column(of, row);
        return column != null && BOUNDED.contains(column.dataType()) ? new Wanted(kind, column, -1) : null;
    }

    /** Returns the position of a partition key whose values can be compared by equals(); -1 for any other expression. */
    private static int key(Expression expression, StructType keys) {
        StructField key = column(expression, keys);
        boolean isComparable = key != null && (COMPARABLE.contains(key.dataType()) || key.dataType() instanceof DecimalType);
        return isComparable ? keys.fieldIndex(key.name()) : -1;
    }

    private static StructField column(Expression expression, StructType row) {
        if (!(expression instanceof NamedReference reference) || reference.fieldNames().length != 1) return null;
        int place = Arrays.asList(row.fieldNames()).indexOf(reference.fieldNames()[0]);
        return place < 0 ? null : row.fields()[place];
    }

    /** Returns the columns of the result. */
    StructType type() {
        StructType type = new StructType();
        for (int group : groups) type = type.add(keys.fields()[group]);
        for (Wanted one : wanted) type = type.add(one.result().name(), one.result().dataType(), one.result().nullable());
        return type;
    }

    /**
     * Returns the result: the groups' keys, then the aggregates. "keysOf": the keys of each directory. Returns null
     * if a footer lacks something.
     */
    List<Object[]> rows(ScanPlan plan, List<InternalRow> keysOf, Configuration settings) {
        Map<Integer, List<Bounds[]>> bounds = new HashMap<>();
        if (wanted.stream().anyMatch(Wanted::isOfFiles)) {
            List<Bounds[]> all = bounds(plan.files(), settings);
            if (all == null) return null;
            for (int file = 0; file < all.size(); ++file) {
                bounds.computeIfAbsent(plan.files().get(file).directory(), directory -> new ArrayList<>()).add(all.get(file));
            }
        }
        Map<InternalRow, List<Part>> parts = new LinkedHashMap<>();
        if (groups.isEmpty()) parts.put(Rows.of(), new ArrayList<>());
        for (int directory = 0; directory < keysOf.size(); ++directory) {
            if (plan.rowCounts()[directory] == 0) continue;
            InternalRow all = keysOf.get(directory);
            Object[] key = groups.stream().map(place -> value(all, place)).toArray();
            parts.computeIfAbsent(Rows.of(key), other -> new ArrayList<>())
                .add(new Part(all, plan.rowCounts()[directory], bounds.getOrDefault(directory, List.of())));
        }
        List<Object[]> rows = new ArrayList<>();
        parts.forEach((key, of) -> rows.add(Stream.concat(
            IntStream.range(0, groups.size()).mapToObj(place -> value(key, place, keys.fields()[groups.get(place)])),
            IntStream.range(0, wanted.size()).mapToObj(place -> value(place, of))).toArray()));
        return rows;
    }

    private Object value(InternalRow keys, int place) {
        return value(keys, place, this.keys.fields()[place]);
    }

    private static Object value(InternalRow row, int place, StructField of) {
        return row.isNullAt(place) ? null : row.get(place, of.dataType());
    }

    private Object value(int place, List<Part> parts) {
        Wanted one = wanted.get(place);
        if (one.kind == Kind.ROWS) return parts.stream().mapToLong(Part::rows).sum();
        return one.key < 0 ? valueOfColumn(place, parts.stream().flatMap(part -> part.files.stream()).toList()) : valueOfKey(one, parts);
    }

    private Object valueOfKey(Wanted one, List<Part> parts) {
        List<Part> filled = parts.stream().filter(part -> !part.keys.isNullAt(one.key)).toList();
        if (one.kind == Kind.COUNT) return filled.stream().mapToLong(Part::rows).sum();
        Comparator<Object> order = Rows.order(one.column.dataType());
        Stream<Object> values = filled.stream().map(part -> value(part.keys, one.key));
        return (one.kind == Kind.MIN ? values.min(order) : values.max(order)).orElse(null);
    }

    private Object valueOfColumn(int place, List<Bounds[]> files) {
        Wanted one = wanted.get(place);
        List<Bounds> filled = files.stream().map(file -> file[place]).filter(file -> file.values > 0).toList();
        if (one.kind == Kind.COUNT) return filled.stream().mapToLong(Bounds::values).sum();
        if (filled.isEmpty()) return null;
        long bound = one.kind == Kind.MIN
            ? filled.stream().mapToLong(Bounds::least).min().getAsLong() : filled.stream().mapToLong(Bounds::greatest).max().getAsLong();
        DataType type = one.column.dataType();
        if (type.equals(DataTypes.ByteType)) return (byte) bound;
        if (type.equals(DataTypes.ShortType)) return (short) bound;
        return type.equals(DataTypes.LongType) ? (Object) bound : (Object) (int) bound;
    }

    /** Returns for each file the statistics in the order of "wanted"; null if a file lacks some. */
    private List<Bounds[]> bounds(List<ScanPlan.DataFile> files, Configuration settings) {
        if (files.stream().anyMatch(file -> file.ids() != null || file.isCut())) return null;
        ExecutorService readers = Executors.newFixedThreadPool(READERS);
        try {
            List<Future<Bounds[]>> reading = files.stream().map(file -> readers.submit(() -> bounds(file, settings))).toList();
            List<Bounds[]> all = new ArrayList<>();
            for (Future<Bounds[]> file : reading) {
                if (file.get() == null) return null;
                all.add(file.get());
            }
            return all;
        } catch (ExecutionException error) {
            return null;  // the tasks that read the file will report its error
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
            return null;
        } finally {
            readers.shutdownNow();
        }
    }

    private Bounds[] bounds(ScanPlan.DataFile file, Configuration settings) throws IOException {
        try (Reader reader = OrcFile.createReader(new Path(file.path()), OrcFile.readerOptions(settings))) {
            TypeDescription row = reader.getSchema().getChildren().get(EventColumns.ROW);
            ColumnStatistics[] statistics = reader.getStatistics();
            long rows = reader.getNumberOfRows();
            int operation = reader.getSchema().getChildren().get(EventColumns.OPERATION).getId();
            if (statistics[operation].getNumberOfValues() != rows) return null;  // the writer did not count
            Bounds[] all = new Bounds[wanted.size()];
            for (int place = 0; place < all.length; ++place) {
                StructField column = wanted.get(place).column;
                if (!wanted.get(place).isOfFiles()) continue;
                int child = row.getFieldNames().indexOf(column.name());
                if (child < 0) return null;
                TypeDescription type = row.getChildren().get(child);
                if (!type.toString().equals(OrcTypes.text(column.dataType()))) return null;
                all[place] = bounds(statistics[type.getId()], rows, wanted.get(place).kind);
                if (all[place] == null) return null;
            }
            return all;
        }
    }

    private static Bounds bounds(ColumnStatistics of, long rows, Kind kind) {
        long values = of.getNumberOfValues();
        if (values != rows && !of.hasNull()) return null;
        if (kind == Kind.COUNT || values == 0) return new Bounds(values, 0, 0);
        long least = Long.MAX_VALUE, greatest = Long.MIN_VALUE;  // ORC's values for missing bounds
        if (of instanceof IntegerColumnStatistics integers) {
            least = integers.getMinimum();
            greatest = integers.getMaximum();
        } else if (of instanceof DateColumnStatistics days && days.getMinimumDayOfEpoch() >= FIRST_GREGORIAN_DAY) {
            least = days.getMinimumDayOfEpoch();
            greatest = days.getMaximumDayOfEpoch();
        }
        boolean isKnown = least <= greatest && least != Long.MAX_VALUE && greatest != Long.MIN_VALUE;
        return isKnown ? new Bounds(values, least, greatest) : null;
    }
}
