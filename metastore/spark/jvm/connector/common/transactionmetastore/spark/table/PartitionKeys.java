package transactionmetastore.spark.table;

import java.time.ZoneId;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;
import transactionmetastore.spark.files.Messages;
import transactionmetastore.spark.internals.DeclaredTexts;
import transactionmetastore.spark.internals.Rows;
import transactionmetastore.spark.internals.TextCast;

/**
 * The keys of rows' partitions: a key is the values of a partition, as Spark writes them, in the text of a JSON list.
 *
 * It equals to_json(array(CAST(... AS STRING), ...)), except that a CHAR has all of its blanks, and that '' is NULL: one
 * key stands for one partition. Rows of one partition mostly come one after the other, so the last row's values are
 * remembered.
 */
public final class PartitionKeys {
    private final DataType[] types;
    private final int[] lengths;
    private final int first;
    private final TextCast[] texts;
    private final Object[] last;
    private String key, compared;
    private List<String> respelled;

    /**
     * Creates a reader of keys. "first": the position of the first partition value in a row. "zone": the time zone in which
     * timestamps are written.
     */
    public PartitionKeys(StructType keys, int first, String zone) {
        this.types = Arrays.stream(keys.fields()).map(field -> field.dataType()).toArray(DataType[]::new);
        this.lengths = Arrays.stream(keys.fields()).mapToInt(DeclaredTexts::blanksUpTo).toArray();
        this.first = first;
        this.texts = Arrays.stream(types).map(type -> new TextCast(type, zone)).toArray(TextCast[]::new);
        this.last = new Object[types.length];
    }

    /** Returns the values of keys, a CHAR with all of its blanks. */
    public static InternalRow padded(StructType keys, InternalRow values) {
        Object[] padded = new Object[keys.length()];
        for (int at = 0; at < padded.length; ++at) padded[at] = padded(keys.fields()[at], values.get(at, keys.fields()[at].dataType()));
        return Rows.of(padded);
    }

    public static Object padded(StructField key, Object value) {
        return value instanceof UTF8String text ? DeclaredTexts.padded(text, DeclaredTexts.blanksUpTo(key)) : value;
    }

    /** Returns the typed values of partition keys, from the metastore's texts. */
    public static InternalRow typed(StructType keys, List<String> texts) {
        ZoneId zone = ZoneId.of(SQLConf.get().sessionLocalTimeZone());
        StructField[] fields = keys.fields();
        Object[] values = new Object[fields.length];
        for (int key = 0; key < fields.length; ++key) {
            String text = texts.get(key);
            values[key] = text == null ? null : typed(fields[key].dataType(), text, zone);
        }
        return Rows.of(values);
    }

    /**
     * Returns the value of a text. A text type takes it as it is: Spark's function would unescape a path, and make "A" of
     * "%41".
     */
    private static Object typed(DataType type, String text, ZoneId zone) {
        return type instanceof StringType ? UTF8String.fromString(text)
            : inScale(type, TextCast.partitionValue(type, text, zone));
    }

    /**
     * Returns a decimal in its type's scale. Spark's function keeps the scale of the text: read with two digits, 1.5 would
     * be 0.15.
     */
    private static Object inScale(DataType type, Object value) {
        if (!(value instanceof Decimal decimal) || !(type instanceof DecimalType wanted)) return value;
        return decimal.changePrecision(wanted.precision(), wanted.scale()) ? decimal : null;
    }

    /** Returns the key of a row's partition; null if the table has no partitions. */
    public String of(InternalRow row) {
        if (types.length == 0) return null;
        boolean isSame = key != null;
        for (int at = 0; at < types.length; ++at) {
            Object value = row.isNullAt(first + at) ? null : row.get(first + at, types[at]);
            if (isSame && same(last[at], value)) continue;
            isSame = false;
            last[at] = value instanceof UTF8String text ? text.copy() : value;
        }
        if (!isSame) key = text();
        return key;
    }

    /**
     * Returns the first partition column in which a row differs from the partition of a key, whatever the spelling of its
     * values; -1 if none.
     */
    public int difference(String other, InternalRow row) {
        String own = of(row);
        if (own.equals(other)) return -1;
        if (!other.equals(compared)) {
            compared = other;
            respelled = respelled(other);
        }
        List<?> values = Messages.list(own);
        for (int at = 0; at < types.length; ++at) {
            if (!java.util.Objects.equals(values.get(at), respelled.get(at))) return at;
        }
        return -1;
    }

    private List<String> respelled(String other) {
        List<String> texts = new ArrayList<>();
        for (Object value : Messages.list(other)) {
            if (value == null) {
                texts.add(null);
                continue;
            }
            int at = texts.size();
            texts.add(text(at, this.texts[at].value(UTF8String.fromString((String) value))));
        }
        return texts;
    }

    private static boolean same(Object value, Object other) {
        return value instanceof byte[] bytes && other instanceof byte[] others ? Arrays.equals(bytes, others)
            : java.util.Objects.equals(value, other);
    }

    private String text() {
        List<String> written = new ArrayList<>();
        for (int at = 0; at < types.length; ++at) written.add(text(at, last[at]));
        return Messages.text(written);
    }

    private String text(int at, Object value) {
        UTF8String text = texts[at].text(value);
        if (text != null) text = DeclaredTexts.padded(text, lengths[at]);
        return KeyText.isNull(text) ? null : text.toString();
    }
}
