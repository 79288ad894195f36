package transactionmetastore.spark.table;

import java.io.Serializable;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.time.Instant;
import java.time.ZoneId;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import org.apache.hive.common.util.Murmur3;
import org.apache.orc.TypeDescription;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.catalyst.util.MapData;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Hive's bucket of a row, computed from Spark's values. metastore/acid/hashes.py has the rule, and a test compares both.
 * Neither Spark's hashes nor any class of Hive's that Spark ships cover both versions and all types; Hive's Murmur3 comes
 * with Spark's ORC library.
 */
public final class BucketHash implements Serializable {
    private static final long serialVersionUID = 1L;
    private static final int SEED = 104729, VERSION_2 = 2;
    private static final long MICROS = 1_000_000;
    private final int version, count;
    private final String zone;
    private final List<Value> columns = new ArrayList<>();

    /**
     * Creates the hash for "count" buckets. "hiveTypes": types of the bucketing columns, in the order of CLUSTERED BY;
     * "types": the same as Spark's types. "zone": the time zone of timestamps' texts, which Hive hashes.
     */
    public BucketHash(int version, int count, List<String> hiveTypes, List<DataType> types, String zone) {
        this.version = version;
        this.count = count;
        this.zone = zone;
        for (int at = 0; at < types.size(); ++at) {
            String text = hiveTypes.get(at).toLowerCase(Locale.ROOT).replace(" ", "");
            columns.add(Value.of(TypeDescription.fromString(text), types.get(at), version));
        }
    }

    /** A type of Hive's, with Spark's type for the same column. */
    private record Value(TypeDescription.Category kind, DataType type, List<Value> children) implements Serializable {
        static Value of(TypeDescription kind, DataType type, int version) {
            List<Value> children = new ArrayList<>();
            switch (kind.getCategory()) {
                case LIST -> children.add(of(kind.getChildren().get(0), ((ArrayType) type).elementType(), version));
                case MAP -> {
                    children.add(of(kind.getChildren().get(0), ((MapType) type).keyType(), version));
                    children.add(of(kind.getChildren().get(1), ((MapType) type).valueType(), 1));
                }
                case STRUCT -> {
                    int at = 0;
                    for (TypeDescription child : kind.getChildren()) {
                        children.add(of(child, ((StructType) type).fields()[at++].dataType(), version));
                    }
                }
                case TIMESTAMP -> {
                    if (version == VERSION_2) throw unhashable(kind, version);
                }
                case UNION, TIMESTAMP_INSTANT -> throw unhashable(kind, version);
                default -> { }
            }
            return new Value(kind.getCategory(), type, children);
        }
    }

    private static IllegalArgumentException unhashable(TypeDescription kind, int version) {
        return new IllegalArgumentException("A table cannot be bucketed by a " + kind.getCategory().getName()
            + " column with bucketing version " + version);
    }

    /** Returns the bucket of a row. "places": positions of its bucketing columns. */
    public int bucket(InternalRow row, int[] places) {
        int hash = 0;
        for (int at = 0; at < places.length; ++at) {
            Value column = columns.get(at);
            Object value = row.isNullAt(places[at]) ? null : row.get(places[at], column.type);
            hash = 31 * hash + hash(value, column, version);
        }
        return (hash & Integer.MAX_VALUE) % count;
    }

    private int hash(Object value, Value of, int version) {
        if (value == null) return 0;
        return switch (of.kind) {
            case BOOLEAN -> (Boolean) value ? 1 : 0;
            case BYTE -> (Byte) value;
            case LIST -> ofArray((ArrayData) value, of.children.get(0), version);
            case STRUCT -> ofStruct((InternalRow) value, of, version);
            case MAP -> ofMap((MapData) value, of, version);
            default -> {
                if (version != VERSION_2) yield javaHash(value, of);
                byte[] bytes = bytes(value, of);
                yield Murmur3.hash32(bytes, bytes.length, SEED);
            }
        };
    }

    private int ofArray(ArrayData array, Value element, int version) {
        int hash = 0;
        for (int at = 0; at < array.numElements(); ++at) {
            hash = 31 * hash + hash(array.isNullAt(at) ? null : array.get(at, element.type), element, version);
        }
        return hash;
    }

    private int ofStruct(InternalRow row, Value of, int version) {
        int hash = 0;
        for (int at = 0; at < of.children.size(); ++at) {
            Value field = of.children.get(at);
            hash = 31 * hash + hash(row.isNullAt(at) ? null : row.get(at, field.type), field, version);
        }
        return hash;
    }

    /** Returns the hash of a map. Both versions hash a map's values by version 1. */
    private int ofMap(MapData map, Value of, int version) {
        Value key = of.children.get(0), value = of.children.get(1);
        ArrayData keys = map.keyArray(), values = map.valueArray();
        int hash = 0;
        for (int at = 0; at < map.numElements(); ++at) {
            hash += hash(keys.get(at, key.type), key, version)
                ^ hash(values.isNullAt(at) ? null : values.get(at, value.type), value, 1);
        }
        return hash;
    }

    private int javaHash(Object value, Value of) {
        return switch (of.kind) {
            case SHORT -> (Short) value;
            case INT, DATE -> (Integer) value;
            case LONG -> Long.hashCode((Long) value);
            case FLOAT -> Float.floatToIntBits((Float) value);
            case DOUBLE -> Long.hashCode(Double.doubleToLongBits((Double) value));
            case TIMESTAMP -> ofTimestamp((Long) value);
            case DECIMAL -> {
                BigDecimal exact = trimmed((Decimal) value);
                yield 31 * exact.unscaledValue().hashCode() + exact.scale();
            }
            default -> {
                int hash = of.kind == TypeDescription.Category.STRING ? 0 : 1;
                for (byte element : bytes(value, of)) hash = 31 * hash + element;
                yield hash;
            }
        };
    }

    private int ofTimestamp(long micros) {
        Instant moment = Instant.ofEpochSecond(Math.floorDiv(micros, MICROS), Math.floorMod(micros, MICROS) * 1000);
        Instant shown = moment.atZone(ZoneId.of(zone)).toLocalDateTime().toInstant(ZoneOffset.UTC);
        return Long.hashCode(shown.getEpochSecond() << 30 | shown.getNano());
    }

    /** Returns the number's bytes, which version 2 hashes; for a floating point number the bytes of its bits. */
    private static byte[] bytes(Object value, Value of) {
        return switch (of.kind) {
            case SHORT -> ByteBuffer.allocate(Short.BYTES).putShort((Short) value).array();
            case INT, DATE -> ByteBuffer.allocate(Integer.BYTES).putInt((Integer) value).array();
            case LONG -> ByteBuffer.allocate(Long.BYTES).putLong((Long) value).array();
            case FLOAT -> ByteBuffer.allocate(Float.BYTES).putFloat(Float.floatToIntBits((Float) value)).array();
            case DOUBLE -> ByteBuffer.allocate(Double.BYTES).putDouble(Double.doubleToLongBits((Double) value)).array();
            case DECIMAL -> trimmed((Decimal) value).unscaledValue().toByteArray();
            case BINARY -> (byte[]) value;
            case CHAR -> ((UTF8String) value).trimRight().getBytes();
            default -> ((UTF8String) value).getBytes();
        };
    }

    /** Returns the decimal without zeros at the end of its fraction, as Hive hashes it. */
    private static BigDecimal trimmed(Decimal value) {
        BigDecimal exact = value.toJavaBigDecimal();
        if (exact.signum() == 0) return new BigDecimal(BigInteger.ZERO);
        BigDecimal short_ = exact.stripTrailingZeros();
        return short_.scale() < 0 ? short_.setScale(0) : short_;
    }
}
