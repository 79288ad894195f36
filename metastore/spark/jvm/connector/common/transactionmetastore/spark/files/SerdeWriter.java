package transactionmetastore.spark.files;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hive.ql.exec.FileSinkOperator;
import org.apache.hadoop.hive.ql.exec.Utilities;
import org.apache.hadoop.hive.ql.io.HiveFileFormatUtils;
import org.apache.hadoop.hive.ql.plan.FileSinkDesc;
import org.apache.hadoop.hive.ql.plan.TableDesc;
import org.apache.hadoop.hive.serde2.AbstractSerDe;
import org.apache.hadoop.hive.serde2.avro.AvroGenericRecordWritable;
import org.apache.hadoop.hive.serde2.objectinspector.ObjectInspectorUtils;
import org.apache.hadoop.hive.serde2.objectinspector.StructField;
import org.apache.hadoop.hive.serde2.objectinspector.StructObjectInspector;
import org.apache.hadoop.io.BinaryComparable;
import org.apache.hadoop.io.Text;
import org.apache.hadoop.io.Writable;
import org.apache.hadoop.mapred.JobConf;
import org.apache.hadoop.mapred.Reporter;
import org.apache.hadoop.mapred.TextInputFormat;
import org.apache.hadoop.mapreduce.TaskAttemptContext;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.catalyst.util.MapData;
import org.apache.spark.sql.execution.datasources.OutputWriter;
import org.apache.spark.sql.execution.datasources.OutputWriterFactory;
import org.apache.spark.sql.hive.HadoopTableReader$;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.Platform;

/**
 * A writer of a file by the table's own SerDe and output format, from which every row reads back the same.
 *
 * SerDes silently write values that they cannot read back: a delimiter inside a text, a line's end, NULL in a CSV. So each
 * record is read back at once, and a different row ends the task, with REFUSAL and the reason. A small file beside it
 * ("rows-" and its name) has the number of rows, which most formats do not store.
 */
public class SerdeWriter extends OutputWriter {
    public static final String REFUSAL = "Cannot be stored: ";
    private final String path;
    private final SerdeTable table;
    private final Configuration settings;
    private final StructType schema;
    private final boolean isRaw, isText;
    private final AbstractSerDe serializer, deserializer;
    private final StructObjectInspector standard, read;
    private final List<?> fields;
    private final scala.Function1<Object, Object>[] wrappers, unwrappers;
    private final Object[] values;
    private final FileSinkOperator.RecordWriter out;
    private long rows;

    @SuppressWarnings({"rawtypes", "unchecked"})  // arrays have no type arguments
    public SerdeWriter(String path, SerdeTable table, StructType schema, Configuration settings) throws Exception {
        this.path = path;
        this.table = table;
        this.settings = settings;
        this.schema = schema;
        this.isRaw = table.isRaw();
        this.isText = TextInputFormat.class.isAssignableFrom(table.input());
        JobConf job = new JobConf(settings);
        TableDesc described = table.described();
        Utilities.copyTableJobPropertiesToConf(described, job);
        this.serializer = table.serde(job, described.getProperties());
        this.deserializer = table.serde(new JobConf(settings), table.properties());
        this.read = (StructObjectInspector) deserializer.getObjectInspector();
        this.fields = read.getAllStructFieldRefs();
        this.standard = (StructObjectInspector) ObjectInspectorUtils.getStandardObjectInspector(
            serializer.getObjectInspector(), ObjectInspectorUtils.ObjectInspectorCopyOption.DEFAULT);
        int count = isRaw ? 0 : schema.length();
        this.values = new Object[count];
        this.wrappers = new scala.Function1[count];
        this.unwrappers = new scala.Function1[count];
        for (int place = 0; place < count; ++place) {
            StructField made = (StructField) standard.getAllStructFieldRefs().get(place);
            StructField declared = (StructField) fields.get(place);
            wrappers[place] = HadoopTableReader$.MODULE$.wrapperFor(
                made.getFieldObjectInspector(), schema.fields()[place].dataType());
            unwrappers[place] = HadoopTableReader$.MODULE$.unwrapperFor(declared.getFieldObjectInspector());
        }
        this.out = HiveFileFormatUtils.getHiveRecordWriter(
            job, described, serializer.getSerializedClass(), new FileSinkDesc(new Path(path).getParent(), described, false),
            new Path(path), Reporter.NULL);
    }

    @Override
    public String path() {
        return path;
    }

    @Override
    public void write(InternalRow row) {
        try {
            Writable record = isRaw ? new Text(row.getUTF8String(0).getBytes()) : record(row);
            if (isText) requireOneLine((BinaryComparable) record);
            out.write(record);
            if (!isRaw) requireSame(row, record);  // after the write: the check consumes Avro's bytes
            ++rows;
        } catch (Exception error) {
            Platform.throwException(error);
        }
    }

    @Override
    public void close() {
        try {
            out.close(false);
            Path file = new Path(path);
            Path beside = new Path(file.getParent(), "rows-" + file.getName());
            FSDataOutputStream count = beside.getFileSystem(settings).create(beside, true);
            try {
                count.write(String.valueOf(rows).getBytes(StandardCharsets.US_ASCII));
            } finally {
                count.close();
            }
        } catch (IOException error) {
            Platform.throwException(error);
        }
    }

    private Writable record(InternalRow row) throws Exception {
        for (int place = 0; place < values.length; ++place) {
            values[place] = row.isNullAt(place) ? null
                : wrappers[place].apply(row.get(place, schema.fields()[place].dataType()));
        }
        try {
            return serializer.serialize(values, standard);
        } catch (UnsupportedOperationException error) {
            throw refused(serializer.getClass().getName() + " only reads");
        } catch (RuntimeException error) {
            throw refused(serializer.getClass().getName() + " does not write the row: " + error);
        }
    }

    private static void requireOneLine(BinaryComparable record) {
        byte[] bytes = record.getBytes();
        for (int at = 0; at < record.getLength(); ++at) {
            if (bytes[at] == '\n' || bytes[at] == '\r') {
                throw refused("a value has a line's end, and each row of this table is a line of its files");
            }
        }
        if (record.getLength() > 2 && bytes[0] == (byte) 0xEF && bytes[1] == (byte) 0xBB && bytes[2] == (byte) 0xBF) {
            throw refused("a row begins with a byte order mark, which is not read at the beginning of a file");
        }
    }

    private void requireSame(InternalRow row, Writable record) {
        int place = 0;
        try {
            if (record instanceof AvroGenericRecordWritable) {  // as a reader of a file does
                AvroGenericRecordWritable avro = (AvroGenericRecordWritable) record;
                avro.setFileSchema(avro.getRecord().getSchema());
            }
            Object readBack = deserializer.deserialize(record);
            for (; place < values.length; ++place) {
                DataType type = schema.fields()[place].dataType();
                Object value = read.getStructFieldData(readBack, (StructField) fields.get(place));
                Object again = value == null ? null : unwrappers[place].apply(value);
                if (!isSame(row.isNullAt(place) ? null : row.get(place, type), again, type)) {
                    throw refused(unreadable(place, row));
                }
            }
        } catch (IllegalArgumentException error) {
            if (error.getMessage() != null && error.getMessage().startsWith(REFUSAL)) throw error;
            throw refused(unreadable(place, row) + " (" + error + ")");
        } catch (Exception error) {
            throw refused(unreadable(place, row) + " (" + error + ")");
        }
    }

    private String unreadable(int place, InternalRow row) {
        return (row.isNullAt(place) ? "NULL" : "a value") + " of the column " + schema.fields()[place].name()
            + " would be another when it is read again: " + serializer.getClass().getSimpleName()
            + " as this table has it cannot hold it";
    }

    private static IllegalArgumentException refused(String reason) {
        return new IllegalArgumentException(REFUSAL + reason);
    }

    /** Returns true if two of Spark's values are the same; the entries of maps may be in any order. */
    public static boolean isSame(Object left, Object right, DataType type) {
        if (left == null || right == null) return left == right;
        if (left instanceof byte[]) return Arrays.equals((byte[]) left, (byte[]) right);
        if (left instanceof Decimal) return ((Decimal) left).compare((Decimal) right) == 0;
        if (type instanceof ArrayType) {
            return isSameArray((ArrayData) left, (ArrayData) right, ((ArrayType) type).elementType());
        }
        if (type instanceof MapType) return isSameMap((MapData) left, (MapData) right, (MapType) type);
        if (type instanceof StructType) return isSameRow((InternalRow) left, (InternalRow) right, (StructType) type);
        return left.equals(right);
    }

    private static boolean isSameArray(ArrayData left, ArrayData right, DataType type) {
        if (left.numElements() != right.numElements()) return false;
        for (int place = 0; place < left.numElements(); ++place) {
            if (!isSame(element(left, place, type), element(right, place, type), type)) return false;
        }
        return true;
    }

    private static boolean isSameMap(MapData left, MapData right, MapType type) {
        if (left.numElements() != right.numElements()) return false;
        for (int place = 0; place < left.numElements(); ++place) {
            Object key = element(left.keyArray(), place, type.keyType());
            Object value = element(left.valueArray(), place, type.valueType());
            boolean isFound = false;
            for (int there = 0; there < right.numElements() && !isFound; ++there) {
                isFound = isSame(key, element(right.keyArray(), there, type.keyType()), type.keyType())
                    && isSame(value, element(right.valueArray(), there, type.valueType()), type.valueType());
            }
            if (!isFound) return false;
        }
        return true;
    }

    private static boolean isSameRow(InternalRow left, InternalRow right, StructType type) {
        for (int place = 0; place < type.length(); ++place) {
            DataType kind = type.fields()[place].dataType();
            Object leftValue = left.isNullAt(place) ? null : left.get(place, kind);
            Object rightValue = right.isNullAt(place) ? null : right.get(place, kind);
            if (!isSame(leftValue, rightValue, kind)) return false;
        }
        return true;
    }

    private static Object element(ArrayData array, int place, DataType type) {
        return array.isNullAt(place) ? null : array.get(place, type);
    }

    /** The factory that Spark sends from the driver to the tasks. */
    public static class Factory extends OutputWriterFactory {
        private static final long serialVersionUID = 1L;
        private final SerdeTable table;

        public Factory(SerdeTable table) {
            this.table = table;
        }

        @Override
        public String getFileExtension(TaskAttemptContext context) {
            return "";
        }

        @Override
        public OutputWriter newInstance(String path, StructType schema, TaskAttemptContext context) {
            try {
                return new SerdeWriter(path, table, schema, context.getConfiguration());
            } catch (Exception error) {
                Platform.throwException(error);
                return null;
            }
        }
    }
}
