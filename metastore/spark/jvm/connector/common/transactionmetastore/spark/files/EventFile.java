package transactionmetastore.spark.files;

import java.io.IOException;
import java.nio.ByteBuffer;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hive.ql.exec.vector.BytesColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.ColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.DecimalColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.DoubleColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.LongColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.StructColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.VectorizedRowBatch;
import org.apache.orc.OrcFile;
import org.apache.orc.TypeDescription;
import org.apache.orc.mapred.OrcMapredRecordWriter;
import org.apache.orc.mapred.OrcOutputFormat;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.execution.datasources.orc.OrcSerializer;
import org.apache.spark.sql.execution.datasources.orc.OrcUtils;
import org.apache.spark.sql.types.BinaryType;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.ByteType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.DoubleType;
import org.apache.spark.sql.types.FloatType;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.LongType;
import org.apache.spark.sql.types.ShortType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/**
 * A file of events, with the notes in its footer that Hive needs (metastore/acid/orc_footer.py).
 *
 * It fills ORC's vectors itself. Spark's own writer would create, for each row, a new nested struct and new converters of
 * its values; in an event that struct is "row", with all of the table's columns.
 */
public final class EventFile implements OrcFile.WriterCallback {
    /** The highest writer number. */
    public static final int MAX_WRITER_ID = 0xFFF;
    private static final int VERSION_1 = 1 << 29;
    private static final int MANY = 1024, FEW = 64;
    private final Path path;
    private final boolean isOfDeletes;
    private final org.apache.orc.Writer file;
    private final VectorizedRowBatch batch;
    private final long[][] numbers = new long[EventColumns.ROW][];
    private final StructColumnVector row;
    private final Column[] columns;
    private final StringBuilder index = new StringBuilder();
    private long rows, lastOriginal = -1, lastBucket, lastRowId, lastCurrent, times, mostTimes, unsorted;
    private long firstRowId, jumps;
    private long[] mostRepeated = {};
    private int lowest = Integer.MAX_VALUE, highest = -1;
    private String lastFlushed = "";

    /** Creates a file. "events": the columns of an event, those of the row with their types in the file. */
    public EventFile(Path path, StructType events, Configuration settings, boolean isOfDeletes) throws IOException {
        this.path = path;
        this.isOfDeletes = isOfDeletes;
        StructType type = (StructType) events.fields()[EventColumns.ROW].dataType();
        TypeDescription schema = OrcUtils.orcTypeDescription(events);
        boolean mayBeLong = type.catalogString().contains("array<") || type.catalogString().contains("map<");
        this.file = OrcFile.createWriter(
            path, OrcOutputFormat.buildOptions(settings).setSchema(schema).callback(this));
        OrcUtils.addSparkVersionMetadata(file);
        this.batch = schema.createRowBatch(mayBeLong ? FEW : MANY);
        for (int column = 0; column < EventColumns.ROW; ++column) numbers[column] = ((LongColumnVector) batch.cols[column]).vector;
        this.row = (StructColumnVector) batch.cols[EventColumns.ROW];
        this.columns = new Column[type.length()];
        Object ofRow = schema.getChildren().get(EventColumns.ROW);
        int place = 0;
        for (TypeDescription ofColumn : ((TypeDescription) ofRow).getChildren()) {
            columns[place] = new Column(type.fields()[place], ofColumn, row.fields[place], place);
            ++place;
        }
    }

    /** Writes an event. "values": the row's columns, perhaps followed by others; null for none. */
    public void write(long original, int bucket, long rowId, long current, InternalRow values) throws IOException {
        if (batch.size == batch.getMaxSize()) flush();
        int at = batch.size;
        numbers[EventColumns.OPERATION][at] = isOfDeletes ? EventColumns.DELETE : EventColumns.INSERT;
        numbers[EventColumns.ORIGINAL][at] = original;
        numbers[EventColumns.BUCKET][at] = bucket;
        numbers[EventColumns.ROW_ID][at] = rowId;
        numbers[EventColumns.CURRENT][at] = current;
        if (values == null) {
            setNull(row, at);
        } else {
            for (int place = 0; place < columns.length; ++place) columns[place].set(at, values);
        }
        batch.size = at + 1;
        note(original, bucket, rowId, current);
    }

    private void note(long original, int bucket, long rowId, long current) {
        boolean isSame = endsWith(original, bucket, rowId);
        if (isSame ? current > lastCurrent : rows > 0 && belongsBeforeLast(original, bucket, rowId)) ++unsorted;
        if (rows == 0) {
            firstRowId = rowId;
        } else if (rowId != lastRowId + 1) {
            ++jumps;
        }
        lastCurrent = current;
        times = isSame ? times + 1 : 1;
        if (times > mostTimes) {
            mostTimes = times;
            mostRepeated = new long[] {original, bucket, rowId};
        }
        lastOriginal = original;
        lastBucket = bucket;
        lastRowId = rowId;
        int writer = writerId(bucket);
        lowest = Math.min(lowest, writer);
        highest = Math.max(highest, writer);
        ++rows;
    }

    /** Returns true if an event belongs before the last one, which is of another row. */
    private boolean belongsBeforeLast(long original, int bucket, long rowId) {
        if (original != lastOriginal) return original < lastOriginal;
        return bucket != lastBucket ? bucket < lastBucket : rowId < lastRowId;
    }

    private void flush() throws IOException {
        lastFlushed = lastOriginal + "," + lastBucket + "," + lastRowId + ";";
        file.addRowBatch(batch);
        batch.reset();
    }

    /** Notes the last event of a stripe, which is the last event given to ORC. */
    @Override
    public void preStripeWrite(OrcFile.WriterContext context) {
        index.append(lastFlushed);
        lastFlushed = "";
    }

    /** Adds the notes to the footer. ORC calls this before it writes the last stripe. */
    @Override
    public void preFooterWrite(OrcFile.WriterContext context) {
        index.append(lastFlushed);
        file.addUserMetadata("hive.acid.key.index", ByteBuffer.wrap(index.toString().getBytes()));
        String stats = isOfDeletes ? "0,0," + rows : rows + ",0,0";
        file.addUserMetadata("hive.acid.stats", ByteBuffer.wrap(stats.getBytes()));
        file.addUserMetadata("hive.acid.version", ByteBuffer.wrap("2".getBytes()));
    }

    /** Closes the file, which is complete then. */
    public void close() throws IOException {
        if (batch.size > 0) flush();
        file.close();
    }

    public Path path() {
        return path;
    }

    public long rows() {
        return rows;
    }

    /** Returns the smallest writer id in the events' bucket numbers. */
    public int lowestWriter() {
        return lowest;
    }

    public int highestWriter() {
        return highest;
    }

    /** Returns the most frequent id of the events: original write id, bucket number, row id. */
    public long[] mostRepeated() {
        return mostRepeated;
    }

    /** Returns the number of events with the most frequent id. */
    public long timesRepeated() {
        return mostTimes;
    }

    /** Returns the number of events that are out of order. */
    public long unsorted() {
        return unsorted;
    }

    /** Returns the row id of the first event. */
    public long firstRowId() {
        return firstRowId;
    }

    /** Returns the number of events whose row id is not the previous event's row id plus 1. */
    public long jumps() {
        return jumps;
    }

    /** Returns true if the last event is of this row. */
    public boolean endsWith(long original, int bucket, long rowId) {
        return rows > 0 && original == lastOriginal && bucket == lastBucket && rowId == lastRowId;
    }

    /** Returns the id of the last event. */
    public long[] last() {
        return new long[] {lastOriginal, lastBucket, lastRowId};
    }

    /**
     * Returns the writer id in a ROW__ID's bucket number, as metastore/acid/bucket.py does; a file of test vectors keeps
     * both equal.
     */
    public static int writerId(int bucket) {
        return bucket >>> 29 == 1 ? bucket >>> 16 & MAX_WRITER_ID : bucket;
    }

    /** Returns the bucket number of a new row. */
    public static int bucketNumber(int writer, int statement) {
        return VERSION_1 | writer << 16 | statement;
    }

    static void setNull(ColumnVector vector, int at) {
        vector.noNulls = false;
        vector.isNull[at] = true;
    }

    /** A column of "row" in a file. Most types are written to ORC's vector directly, the others by Spark's converter. */
    static class Column {
        private static final int LONG = 0, INT = 1, SHORT = 2, BYTE = 3, BOOLEAN = 4, DOUBLE = 5, FLOAT = 6, STRING = 7,
            BINARY = 8, DECIMAL = 9, OTHER = 10;
        private final DataType type;
        private final TypeDescription kind;
        private final ColumnVector vector;
        private final int place;
        private final int way;
        private final OrcSerializer serializer;
        private final GenericInternalRow lone = new GenericInternalRow(1);

        Column(StructField field, TypeDescription kind, ColumnVector vector, int place) {
            this.type = field.dataType();
            this.kind = kind;
            this.vector = vector;
            this.place = place;
            this.way = way(type);
            this.serializer = new OrcSerializer(new StructType(new StructField[] {field}));
        }

        private static int way(DataType type) {
            if (type instanceof LongType) return LONG;
            if (type instanceof IntegerType) return INT;
            if (type instanceof ShortType) return SHORT;
            if (type instanceof ByteType) return BYTE;
            if (type instanceof BooleanType) return BOOLEAN;
            if (type instanceof DoubleType) return DOUBLE;
            if (type instanceof FloatType) return FLOAT;
            if (type instanceof StringType) return STRING;
            if (type instanceof BinaryType) return BINARY;
            if (!(type instanceof DecimalType)) return OTHER;
            return ((DecimalType) type).precision() <= Decimal.MAX_LONG_DIGITS() ? DECIMAL : OTHER;
        }

        void set(int at, InternalRow values) {
            if (values.isNullAt(place)) {
                EventFile.setNull(vector, at);
                return;
            }
            switch (way) {
            case LONG: ((LongColumnVector) vector).vector[at] = values.getLong(place); break;
            case INT: ((LongColumnVector) vector).vector[at] = values.getInt(place); break;
            case SHORT: ((LongColumnVector) vector).vector[at] = values.getShort(place); break;
            case BYTE: ((LongColumnVector) vector).vector[at] = values.getByte(place); break;
            case BOOLEAN: ((LongColumnVector) vector).vector[at] = values.getBoolean(place) ? 1 : 0; break;
            case DOUBLE: ((DoubleColumnVector) vector).vector[at] = values.getDouble(place); break;
            case FLOAT: ((DoubleColumnVector) vector).vector[at] = values.getFloat(place); break;
            case STRING: ((BytesColumnVector) vector).setVal(at, values.getUTF8String(place).getBytes()); break;
            case BINARY: ((BytesColumnVector) vector).setVal(at, values.getBinary(place)); break;
            case DECIMAL:
                DecimalType exact = (DecimalType) type;
                Decimal value = values.getDecimal(place, exact.precision(), exact.scale());
                ((DecimalColumnVector) vector).vector[at].setFromLongAndScale(value.toUnscaledLong(), value.scale());
                break;
            default:
                lone.update(0, values.get(place, type));
                OrcMapredRecordWriter.setColumn(kind, vector, at, serializer.serialize(lone).getFieldValue(0));
            }
        }
    }
}
