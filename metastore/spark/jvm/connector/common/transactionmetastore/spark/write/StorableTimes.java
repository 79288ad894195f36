package transactionmetastore.spark.write;

import java.time.Instant;
import java.time.ZoneId;
import java.time.zone.ZoneRules;
import java.util.Arrays;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.SpecializedGetters;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.catalyst.util.MapData;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.types.TimestampType;

/**
 * A check for dates and times that no ORC file can hold (metastore/acid_tables/calendars.py): ORC's writer would store
 * another value. Spark holds instants, files hold the local time of the JVM that writes them.
 */
final class StorableTimes {
    private static final long SECOND = 1_000_000, DAY = 86_400;
    /** The days from 1582-10-05 to 14, which no calendar names. */
    private static final long FIRST_UNNAMED = -141_437, LAST_UNNAMED = -141_428;
    private static final long FIRST_UNTELLABLE = -999_000, LAST_UNTELLABLE = -1;
    private static final ZoneRules ZONE = ZoneId.systemDefault().getRules();

    private final StructField[] fields;
    private final int[] places;

    /** Creates a check. "columns": the first columns of a row. */
    StorableTimes(StructType columns) {
        fields = columns.fields();
        places = places(columns);
    }

    /** Returns the reason why a row cannot be stored, or null. */
    String refusal(InternalRow row) {
        for (int place : places) {
            if (isUnstorable(row, place, fields[place].dataType())) {
                return "the value of " + fields[place].name() + " cannot be stored: files of Hive's have no days between 1582-10-04 and "
                    + "1582-10-15, and no ORC reader can tell a fraction of the last second before 1970 from one of the first second after it";
            }
        }
        return null;
    }

    private static int[] places(StructType columns) {
        int[] all = new int[columns.length()];
        Arrays.setAll(all, place -> place);
        return Arrays.stream(all).filter(place -> columns.fields()[place].dataType().existsRecursively(
            part -> part instanceof DateType || part instanceof TimestampType)).toArray();
    }

    private static boolean isUnstorable(SpecializedGetters values, int place, DataType type) {
        if (values.isNullAt(place)) return false;
        if (type instanceof DateType) return isUnnamed(values.getInt(place));
        if (type instanceof TimestampType) return isUnstorable(values.getLong(place));
        if (type instanceof StructType struct) {
            InternalRow row = values.getStruct(place, struct.length());
            for (int field : places(struct)) if (isUnstorable(row, field, struct.fields()[field].dataType())) return true;
            return false;
        }
        if (type instanceof ArrayType array) return isUnstorable(values.getArray(place), array.elementType());
        if (!(type instanceof MapType map)) return false;
        MapData pairs = values.getMap(place);
        return isUnstorable(pairs.keyArray(), map.keyType()) || isUnstorable(pairs.valueArray(), map.valueType());
    }

    private static boolean isUnstorable(ArrayData values, DataType type) {
        for (int at = 0; at < values.numElements(); ++at) if (isUnstorable(values, at, type)) return true;
        return false;
    }

    private static boolean isUnstorable(long micros) {
        if (micros >= FIRST_UNTELLABLE) return micros <= LAST_UNTELLABLE;
        long second = Math.floorDiv(micros, SECOND);
        if (second > (LAST_UNNAMED + 2) * DAY) return false;
        return isUnnamed(Math.floorDiv(second + ZONE.getOffset(Instant.ofEpochSecond(second)).getTotalSeconds(), DAY));
    }

    private static boolean isUnnamed(long day) {
        return day >= FIRST_UNNAMED && day <= LAST_UNNAMED;
    }
}
