package transactionmetastore.spark.files;

import java.math.BigDecimal;
import java.time.Instant;
import java.time.ZoneId;
import java.util.Base64;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.XXH64;
import org.apache.spark.sql.types.BinaryType;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.ByteType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.DoubleType;
import org.apache.spark.sql.types.FloatType;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.LongType;
import org.apache.spark.sql.types.ShortType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.types.TimestampType;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Tallies of some columns of the rows that a task writes: Tallied in metastore/compaction/statistics/rules.py.
 *
 * Distinct values are sketched as in HyperLogLog, so that the sketches of several tasks can be joined.
 */
public final class ColumnTallies {
    /** Logarithm of the number of the sketch's registers: SKETCH_BITS in metastore/compaction/statistics/rules.py. */
    private static final int BITS = 11;
    private static final int SEED = 42, MICROS = 1000000;
    private final Column[] columns;
    private long rows;

    /** Creates tallies. "names": columns of the row; columns of nested types are skipped. */
    public ColumnTallies(StructType row, List<?> names) {
        columns = new Column[names.size()];
        for (int number = 0; number < columns.length; ++number) {
            String name = (String) names.get(number);
            int place = row.fieldIndex(name);
            columns[number] = new Column(name, place, row.fields()[place].dataType());
        }
    }

    /** Adds a row. */
    public void add(InternalRow row) {
        ++rows;
        for (int number = 0; number < columns.length; ++number) columns[number].add(row);
    }

    /** Returns one text for each column. */
    public String[] texts() {
        String[] texts = new String[columns.length];
        for (int number = 0; number < columns.length; ++number) texts[number] = columns[number].text(rows);
        return texts;
    }

    /** The tally of a column. */
    private static final class Column {
        private static final int TRUTH = 0, WHOLE = 1, FRACTION = 2, TEXT = 3, BYTES = 4, SHORT_DECIMAL = 5, DECIMAL = 6;
        private static final int TIME = 7;
        private final String name;
        private final int place, kind, precision, scale;
        private final DataType type;
        private final byte[] sketch = new byte[1 << BITS];
        private long nulls, trues, length, longest, lowest = Long.MAX_VALUE, highest = Long.MIN_VALUE;
        private double least = Double.POSITIVE_INFINITY, most = Double.NEGATIVE_INFINITY;
        private BigDecimal smallest, largest;

        Column(String name, int place, DataType type) {
            this.name = name;
            this.place = place;
            this.type = type;
            this.kind = kindOf(type);
            this.precision = type instanceof DecimalType ? ((DecimalType) type).precision() : 0;
            this.scale = type instanceof DecimalType ? ((DecimalType) type).scale() : 0;
        }

        private static int kindOf(DataType type) {
            if (type instanceof BooleanType) return TRUTH;
            if (type instanceof FloatType || type instanceof DoubleType) return FRACTION;
            if (type instanceof StringType) return TEXT;
            if (type instanceof BinaryType) return BYTES;
            if (type instanceof TimestampType) return TIME;
            if (type instanceof DecimalType) return ((DecimalType) type).precision() <= 18 ? SHORT_DECIMAL : DECIMAL;
            if (type instanceof ByteType || type instanceof ShortType || type instanceof IntegerType
                || type instanceof LongType || type instanceof DateType) return WHOLE;
            throw new IllegalArgumentException("There are no statistics of columns of the type " + type.sql());
        }

        void add(InternalRow row) {
            if (row.isNullAt(place)) {
                ++nulls;
                return;
            }
            switch (kind) {
            case TRUTH:
                if (row.getBoolean(place)) ++trues;
                return;
            case WHOLE:
                note(whole(row));
                return;
            case TIME:
                note(row.getLong(place));
                return;
            case FRACTION:
                note(type instanceof FloatType ? (double) row.getFloat(place) : row.getDouble(place));
                return;
            case TEXT:
                note(row.getUTF8String(place));
                return;
            case BYTES:
                measure(row.getBinary(place).length);
                return;
            case SHORT_DECIMAL:
                note(row.getDecimal(place, precision, scale).toUnscaledLong());
                return;
            default:
                note(row.getDecimal(place, precision, scale).toJavaBigDecimal());
            }
        }

        private long whole(InternalRow row) {
            if (type instanceof LongType) return row.getLong(place);
            if (type instanceof ShortType) return row.getShort(place);
            if (type instanceof ByteType) return row.getByte(place);
            return row.getInt(place);
        }

        private void note(long value) {
            lowest = Math.min(lowest, value);
            highest = Math.max(highest, value);
            sketch(XXH64.hashLong(value, SEED));
        }

        /** Adds a value to the range. Infinite values and NaN are left out, as in Hive's statistics. */
        private void note(double value) {
            if (!Double.isNaN(value) && !Double.isInfinite(value)) {
                least = Math.min(least, value);
                most = Math.max(most, value);
            }
            sketch(XXH64.hashLong(Double.doubleToLongBits(value == 0.0 ? 0.0 : value), SEED));
        }

        private void note(UTF8String value) {
            measure(value.numChars());
            sketch(XXH64.hashUnsafeBytes(value.getBaseObject(), value.getBaseOffset(), value.numBytes(), SEED));
        }

        private void note(BigDecimal value) {
            if (smallest == null || value.compareTo(smallest) < 0) smallest = value;
            if (largest == null || value.compareTo(largest) > 0) largest = value;
            byte[] bytes = value.setScale(scale).unscaledValue().toByteArray();
            sketch(XXH64.hashUnsafeBytes(bytes, Platform.BYTE_ARRAY_OFFSET, bytes.length, SEED));
        }

        private void measure(int size) {
            length += size;
            longest = Math.max(longest, size);
        }

        private void sketch(long hash) {
            int register = (int) (hash >>> (64 - BITS));
            byte rank = (byte) (Long.numberOfLeadingZeros(hash << BITS | 1L << (BITS - 1)) + 1);
            if (rank > sketch[register]) sketch[register] = rank;
        }

        String text(long rows) {
            Map<String, Object> text = new LinkedHashMap<>();
            text.put("column", name);
            text.put("rows", rows);
            text.put("nulls", nulls);
            text.put("trues", trues);
            text.put("length", length);
            text.put("longest", longest);
            text.put("low", bound(true));
            text.put("high", bound(false));
            text.put("sketch", Base64.getEncoder().encodeToString(sketch));
            return Messages.text(text);
        }

        /** Returns the lowest or highest value, a decimal as its unscaled number; null if there is none. */
        private String bound(boolean isLow) {
            if (kind == DECIMAL) {
                BigDecimal value = isLow ? smallest : largest;
                return value == null ? null : value.setScale(scale).unscaledValue().toString();
            }
            if (kind == FRACTION) return least > most ? null : Double.toString(isLow ? least : most);
            if (lowest > highest) return null;
            return Long.toString(kind == TIME ? wallSeconds(isLow ? lowest : highest) : isLow ? lowest : highest);
        }

        /** Returns a timestamp as Hive shows it, in seconds: files hold local times, in the zone of the writer. */
        private static long wallSeconds(long micros) {
            long seconds = Math.floorDiv(micros, (long) MICROS);
            return seconds + ZoneId.systemDefault().getRules().getOffset(Instant.ofEpochSecond(seconds)).getTotalSeconds();
        }
    }
}
