package transactionmetastore.spark.table;

import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import org.apache.orc.TypeDescription;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.catalog.functions.BoundFunction;
import org.apache.spark.sql.connector.catalog.functions.ScalarFunction;
import org.apache.spark.sql.connector.catalog.functions.UnboundFunction;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.Expressions;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/**
 * The writer of an event, as a function by which Spark distributes and orders rows.
 *
 * Rule (ACID-13, ACID-14): an event of a row that exists goes to the writer in the row's bucket number, one of a new row to
 * the bucket of Hive's hash. New rows of a table without buckets may go anywhere: any hash spreads them, and their order
 * within a task does not matter.
 *
 * Spark looks functions up in the catalog by their names only, so a function's parameters are in its name: the purpose, the
 * version of the hash, the number of buckets, the zone of timestamps, the types of the columns.
 */
public final class WriterFunction implements UnboundFunction {
    private static final long serialVersionUID = 1L;
    private static final String PREFIX = "__acid_writer";
    private static final char APART = '|';
    private static final int SPREAD = 64;
    /** The zone for buckets of version 2, which do not depend on a time zone. */
    public static final String NO_ZONE = "UTC";
    private final String name;

    private WriterFunction(String name) {
        this.name = name;
    }

    /** The purpose of a function: it returns the task of an event, or the event's position among the events of the task. */
    public enum Purpose { ROUTE, ORDER }

    /** Returns the function of this name; null for any other name. */
    public static UnboundFunction named(String name) {
        if (name.equals(KeyText.NAME)) return new KeyText();
        return name.startsWith(PREFIX + APART) ? new WriterFunction(name) : null;
    }

    /** Returns the transform for events of existing rows; its argument is their bucket number. */
    public static Transform ofRows(String bucketNumber) {
        return Expressions.apply(text(Purpose.ROUTE, TableShape.Buckets.NONE, NO_ZONE), Expressions.column(bucketNumber));
    }

    /** Returns the transform for new rows of a table with buckets; its arguments are the bucketing columns. */
    public static Transform ofNewRows(TableShape.Buckets buckets, String zone) {
        return Expressions.apply(text(Purpose.ROUTE, buckets, zone), columns(null, buckets.columns()));
    }

    /** Returns the transform for the buckets of existing rows, of bucketing version 2. */
    public static Transform ofBuckets(TableShape.Buckets buckets) {
        return ofNewRows(buckets, NO_ZONE);
    }

    /**
     * Returns the transform for events of existing and of new rows. "spreading": columns whose values spread the new rows
     * of a table without buckets.
     */
    public static Transform ofChanges(Purpose purpose, String bucketNumber, TableShape.Buckets buckets, List<String> spreading,
                               String zone) {
        List<String> hashed = buckets.count() > 0 ? buckets.columns() : purpose == Purpose.ROUTE ? spreading : List.of();
        return Expressions.apply(text(purpose, buckets, zone) + APART + "both", columns(bucketNumber, hashed));
    }

    private static Expression[] columns(String first, List<String> others) {
        List<Expression> columns = new ArrayList<>();
        if (first != null) columns.add(Expressions.column(first));
        for (String other : others) columns.add(reference(other));
        return columns.toArray(new Expression[0]);
    }

    /** Returns a reference to a column, whose name may contain any character. */
    public static Expression reference(String column) {
        return Expressions.column(quoted(column));
    }

    public static String quoted(String column) {
        return "`" + column.replace("`", "``") + "`";
    }

    private static String text(Purpose purpose, TableShape.Buckets buckets, String zone) {
        StringBuilder types = new StringBuilder();
        for (String type : buckets.hiveTypes()) types.append(types.isEmpty() ? "" : ",").append("c:").append(type);
        return String.join(String.valueOf(APART), PREFIX, purpose.name().toLowerCase(Locale.ROOT),
            String.valueOf(buckets.version()), String.valueOf(buckets.count()), zone, "struct<" + types + ">");
    }

    @Override
    public String name() {
        return name;
    }

    @Override
    public String description() {
        return "the writer of an event of an ACID table";
    }

    @Override
    public BoundFunction bind(StructType arguments) {
        return new Bound(name, arguments);
    }

    /** The function for certain argument types. */
    private static final class Bound implements ScalarFunction<Integer> {
        private static final long serialVersionUID = 1L;
        private final String name;
        private final DataType[] types;
        private final boolean hasNumber, isRouting;
        private final BucketHash hash;
        private final int[] places;

        Bound(String name, StructType arguments) {
            this.name = name;
            List<DataType> types = new ArrayList<>();
            for (StructField field : arguments.fields()) types.add(field.dataType());
            this.types = types.toArray(new DataType[0]);
            String[] parts = name.split("\\" + APART);
            this.isRouting = parts[1].equalsIgnoreCase(Purpose.ROUTE.name());
            int version = Integer.parseInt(parts[2]), count = Integer.parseInt(parts[3]);
            this.hasNumber = count == 0 || parts.length > 6;
            int first = hasNumber ? 1 : 0;
            this.places = new int[types.size() - first];
            for (int at = 0; at < places.length; ++at) places[at] = first + at;
            List<String> hiveTypes = new ArrayList<>();
            if (count > 0) {
                for (TypeDescription type : TypeDescription.fromString(parts[5]).getChildren()) hiveTypes.add(type.toString());
            }
            this.hash = count > 0
                ? new BucketHash(version, count, hiveTypes, types.subList(first, types.size()), parts[4]) : null;
        }

        @Override
        public DataType[] inputTypes() {
            return types;
        }

        @Override
        public DataType resultType() {
            return DataTypes.IntegerType;
        }

        @Override
        public boolean isResultNullable() {
            return false;
        }

        @Override
        public String name() {
            return "acid_writer";
        }

        @Override
        public String canonicalName() {
            return name;
        }

        @Override
        public Integer produceResult(InternalRow arguments) {
            if (hasNumber && !arguments.isNullAt(0)) {
                return transactionmetastore.spark.files.EventFile.writerId(arguments.getInt(0));
            }
            if (hash != null) return hash.bucket(arguments, places);
            return isRouting ? spread(arguments) : -1;
        }

        private int spread(InternalRow arguments) {
            int mixed = 0;
            for (int place : places) {
                Object value = arguments.isNullAt(place) ? null : arguments.get(place, types[place]);
                mixed = 31 * mixed + (value == null ? 0 : value.hashCode());
            }
            return Math.floorMod(mixed, SPREAD);
        }

        @Override
        public boolean equals(Object other) {
            return other instanceof Bound bound && bound.name.equals(name);
        }

        @Override
        public int hashCode() {
            return name.hashCode();
        }
    }
}
