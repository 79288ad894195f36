package transactionmetastore.spark.read;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.orc.ColumnStatistics;
import org.apache.orc.DateColumnStatistics;
import org.apache.orc.IntegerColumnStatistics;
import org.apache.orc.OrcFile;
import org.apache.orc.Reader;
import org.apache.orc.TypeDescription;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.aggregate.AggregateFunc;
import org.apache.spark.sql.connector.expressions.aggregate.Count;
import org.apache.spark.sql.connector.expressions.aggregate.CountStar;
import org.apache.spark.sql.connector.expressions.aggregate.Max;
import org.apache.spark.sql.connector.expressions.aggregate.Min;
import org.apache.spark.sql.execution.datasources.orc.OrcUtils;
import org.apache.spark.sql.types.AtomicType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/**
 * The aggregates of whole tables that footers answer: count(*), count of a column, min and max of integers and dates.
 *
 * Rule: whatever is not certain is read instead. Statistics of texts are cut short, those of floating point numbers do not know NaN, those
 * of timestamps stand in a zone. A file must have the column in the table's type, since another one is converted row by row.
 */
final class FooterValues {
    private static final int READERS = 8;
    /** Before this day ORC's writers differ in the calendar: 1582-10-15. */
    private static final long FIRST_GREGORIAN_DAY = -141427;
    private static final List<DataType> BOUNDED =
        List.of(DataTypes.ByteType, DataTypes.ShortType, DataTypes.IntegerType, DataTypes.LongType, DataTypes.DateType);

    private enum Kind { ROWS, COUNT, MIN, MAX }

    /** An aggregate; "column": null for ROWS. */
    private record Wanted(Kind kind, StructField column) {
        StructField result() {
            return switch (kind) {
                case ROWS -> new StructField("count(*)", DataTypes.LongType, false, null);
                case COUNT -> new StructField("count(" + column.name() + ")", DataTypes.LongType, false, null);
                case MIN -> new StructField("min(" + column.name() + ")", column.dataType(), true, null);
                case MAX -> new StructField("max(" + column.name() + ")", column.dataType(), true, null);
            };
        }
    }

    /** What a file's footer says of a column; without values the bounds mean nothing. */
    private record Bounds(long values, long least, long greatest) {}

    private final List<Wanted> wanted;

    private FooterValues(List<Wanted> wanted) {
        this.wanted = wanted;
    }

    /** The aggregates "functions" over the columns "row"; null where one of them is none that footers answer. */
    static FooterValues of(AggregateFunc[] functions, StructType row) {
        List<Wanted> all = new ArrayList<>();
        for (AggregateFunc function : functions) {
            Wanted one = wanted(function, row);
            if (one == null) return null;
            all.add(one);
        }
        return all.isEmpty() ? null : new FooterValues(all);
    }

    private static Wanted wanted(AggregateFunc function, StructType row) {
        if (function instanceof CountStar) return new Wanted(Kind.ROWS, null);
        if (function instanceof Min min) return bound(Kind.MIN, column(min.column(), row));
        if (function instanceof Max max) return bound(Kind.MAX, column(max.column(), row));
        StructField counted = function instanceof Count count && !count.isDistinct() ? column(count.column(), row) : null;
        return counted != null && counted.dataType() instanceof AtomicType ? new Wanted(Kind.COUNT, counted) : null;
    }

    private static Wanted bound(Kind kind, StructField column) {
        return column != null && BOUNDED.contains(column.dataType()) ? new Wanted(kind, column) : null;
    }

    private static StructField column(Expression expression, StructType row) {
        if (!(expression instanceof NamedReference reference) || reference.fieldNames().length != 1) return null;
        int place = Arrays.asList(row.fieldNames()).indexOf(reference.fieldNames()[0]);
        return place < 0 ? null : row.fields()[place];
    }

    /** The columns of the result. */
    StructType type() {
        StructType type = new StructType();
        for (Wanted one : wanted) type = type.add(one.result().name(), one.result().dataType(), one.result().nullable());
        return type;
    }

    /** The values over files of "rows" rows, of which all count; null where a footer lacks something. */
    List<Object> values(long rows, List<ScanPlan.DataFile> files, Configuration settings) {
        List<Bounds[]> bounds = wanted.stream().allMatch(one -> one.kind == Kind.ROWS) ? List.of() : bounds(files, settings);
        if (bounds == null) return null;
        List<Object> values = new ArrayList<>();
        for (int place = 0; place < wanted.size(); ++place) values.add(value(place, rows, bounds));
        return values;
    }

    private Object value(int place, long rows, List<Bounds[]> files) {
        Wanted one = wanted.get(place);
        if (one.kind == Kind.ROWS) return rows;
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

    /** For each file, in the order of "wanted"; null where a file cannot tell. */
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
            return null;  // the tasks that read the file say what is wrong with it
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
            return null;
        } finally {
            readers.shutdownNow();
        }
    }

    private Bounds[] bounds(ScanPlan.DataFile file, Configuration settings) throws IOException {
        try (Reader reader = OrcFile.createReader(new Path(file.path()), OrcFile.readerOptions(settings))) {
            TypeDescription row = reader.getSchema().getChildren().get(Layout.ROW);
            ColumnStatistics[] statistics = reader.getStatistics();
            long rows = reader.getNumberOfRows();
            int operation = reader.getSchema().getChildren().get(Layout.OPERATION).getId();
            if (statistics[operation].getNumberOfValues() != rows) return null;  // its writer did not count
            Bounds[] all = new Bounds[wanted.size()];
            for (int place = 0; place < all.length; ++place) {
                StructField column = wanted.get(place).column;
                if (column == null) continue;
                int child = row.getFieldNames().indexOf(column.name());
                if (child < 0) return null;
                TypeDescription type = row.getChildren().get(child);
                if (!type.toString().equals(OrcUtils.getOrcSchemaString(column.dataType()))) return null;
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
        long least = Long.MAX_VALUE, greatest = Long.MIN_VALUE;  // what ORC has for bounds that are not there
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
