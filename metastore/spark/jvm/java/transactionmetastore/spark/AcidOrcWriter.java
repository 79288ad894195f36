package transactionmetastore.spark;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Function;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hive.ql.exec.vector.BytesColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.ColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.DecimalColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.DoubleColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.LongColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.StructColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.VectorizedRowBatch;
import org.apache.hadoop.mapreduce.Job;
import org.apache.hadoop.mapreduce.TaskAttemptContext;
import org.apache.orc.OrcFile;
import org.apache.orc.TypeDescription;
import org.apache.orc.mapred.OrcMapredRecordWriter;
import org.apache.orc.mapred.OrcOutputFormat;
import org.apache.spark.sql.DataFrameWriter;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.execution.datasources.OutputWriter;
import org.apache.spark.sql.execution.datasources.OutputWriterFactory;
import org.apache.spark.sql.execution.datasources.orc.OrcFileFormat;
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
import org.apache.spark.util.CollectionAccumulator;

/**
 * Spark's ORC source, with a writer for changes that fills ORC's vectors itself.
 *
 * A change is one of Hive's events, or both at once: an update is the old version's delete event and the new one's
 * insert event. Each file of Spark's becomes up to two, "part-..." with insert events and "delete-part-..." with delete
 * events; the task that closes one reports what is in it, and Spark takes the reports of the attempts that it keeps.
 * Spark's own writer makes a nested struct anew for each row, and everything that converts its values; of an event that
 * is "row", with all of the table's columns.
 */
public class AcidOrcWriter extends OrcFileFormat {
    private static final long serialVersionUID = 1L;
    private static final int INSERT = 0, UPDATE = 1, DELETE = 2;
    private static final int OPERATION = 0, ORIGINAL = 1, BUCKET = 2, ROW_ID = 3, CURRENT = 4, ROW = 5;
    private static final String REPORTS = "acidreports";
    /** Writes that go on, by their names: Spark makes the format anew, and tells it no more than texts. */
    private static final Map<String, Write> WRITES = new ConcurrentHashMap<>();

    /**
     * Let a writer that has got everything but its format write below a path. "statement" marks the new row versions;
     * "around", if there is one, makes another factory of writers of the one here.
     *
     * Returns the report of each file (Events.finished), as JSON. Spark finds a format by its class's name.
     */
    public String save(SparkSession spark, DataFrameWriter<?> writer, String path, int statement, Function<?, ?> around) {
        CollectionAccumulator<String> reports = new CollectionAccumulator<>();
        spark.sparkContext().register(reports);
        String name = UUID.randomUUID().toString();
        Thread thread = Thread.currentThread();
        ClassLoader usual = thread.getContextClassLoader();
        thread.setContextClassLoader(new KnowingUs(usual));
        WRITES.put(name, new Write(reports, statement, around));
        try {
            writer.format(getClass().getName()).option(REPORTS, name).save(path);
        } finally {
            WRITES.remove(name);
            thread.setContextClassLoader(usual);
        }
        return Messages.listed(reports.value());
    }

    /** What a write is besides its rows. */
    private static class Write {
        final CollectionAccumulator<String> reports;
        final int statement;
        final Function<?, ?> around;

        Write(CollectionAccumulator<String> reports, int statement, Function<?, ?> around) {
            this.reports = reports;
            this.statement = statement;
            this.around = around;
        }
    }

    /** What knows all classes that its parent knows, and this one. */
    public static class KnowingUs extends ClassLoader {
        public KnowingUs(ClassLoader parent) {
            super(parent);
        }

        @Override
        protected Class<?> findClass(String name) throws ClassNotFoundException {
            if (name.equals(AcidOrcWriter.class.getName())) return AcidOrcWriter.class;
            throw new ClassNotFoundException(name);
        }
    }

    @Override
    public OutputWriterFactory prepareWrite(
            SparkSession spark, Job job, scala.collection.immutable.Map<String, String> options, StructType events) {
        Object found = WRITES.get((Object) options.apply(REPORTS));
        Write write = (Write) found;
        OutputWriterFactory made = new Factory(
            super.prepareWrite(spark, job, options, events), write.reports, write.statement);
        return write.around == null ? made : around(write.around, made);
    }

    @SuppressWarnings("unchecked")  // the compiler at the user's makes no bridges, so such functions are of Object
    private static OutputWriterFactory around(Function<?, ?> around, OutputWriterFactory made) {
        return (OutputWriterFactory) ((Function<Object, Object>) around).apply(made);
    }

    /** What goes from the driver to the tasks. */
    public static class Factory extends OutputWriterFactory {
        private static final long serialVersionUID = 1L;
        private final OutputWriterFactory plain;
        private final CollectionAccumulator<String> reports;
        private final int statement;

        public Factory(OutputWriterFactory plain, CollectionAccumulator<String> reports, int statement) {
            this.plain = plain;
            this.reports = reports;
            this.statement = statement;
        }

        @Override
        public String getFileExtension(TaskAttemptContext context) {
            return plain.getFileExtension(context);
        }

        @Override
        public OutputWriter newInstance(String path, StructType events, TaskAttemptContext context) {
            return new Changes(path, events, context.getConfiguration(), reports, statement);
        }
    }

    /** The changes of one (partition, writer), sorted by ROW__ID. */
    public static class Changes extends OutputWriter {
        private final String path;
        private final StructType events;
        private final Configuration settings;
        private final CollectionAccumulator<String> reports;
        private final int statement;
        private Events inserts, deletes;
        private long nextRowId, updates;

        public Changes(String path, StructType events, Configuration settings, CollectionAccumulator<String> reports,
                       int statement) {
            this.path = path;
            this.events = events;
            this.settings = settings;
            this.reports = reports;
            this.statement = statement;
        }

        @Override
        public String path() {
            return path;
        }

        @Override
        public void write(InternalRow change) {
            for (int column = 0; column < ROW; ++column) {
                if (column != ROW_ID && change.isNullAt(column)) {
                    throw new IllegalStateException("Of an event only the row, and the id of a new one, may be NULL");
                }
            }
            int operation = change.getInt(OPERATION), bucket = change.getInt(BUCKET);
            long original = change.getLong(ORIGINAL), current = change.getLong(CURRENT);
            boolean isNew = change.isNullAt(ROW_ID);
            if (isNew && operation != INSERT) {
                throw new IllegalStateException("Only an inserted row may be without an id");
            }
            try {
                if (operation != INSERT) {
                    if (deletes == null) deletes = open("delete-", DELETE);
                    deletes.write(original, bucket, change.getLong(ROW_ID), current, null);
                }
                if (operation == DELETE) return;
                if (inserts == null) inserts = open("", INSERT);
                if (operation == UPDATE) {
                    ++updates;
                    inserts.write(current, newBucket(bucket), nextRowId++, current, change);
                } else {
                    inserts.write(original, bucket, isNew ? nextRowId++ : change.getLong(ROW_ID), current, change);
                }
            } catch (IOException error) {
                throw new UncheckedIOException(error);
            }
        }

        /** The new version of a row keeps the writer of the old one, as in Hive. */
        private int newBucket(int bucket) {
            return VERSION_1 | writerId(bucket) << 16 | statement;
        }

        private Events open(String prefix, int kind) throws IOException {
            Path given = new Path(path);
            return new Events(new Path(given.getParent(), prefix + given.getName()), events, settings, kind);
        }

        @Override
        public void close() {
            try {
                if (deletes != null) reports.add(deletes.finished(0));
                if (inserts != null) reports.add(inserts.finished(updates));
            } catch (IOException error) {
                throw new UncheckedIOException(error);
            }
        }
    }

    private static final int VERSION_1 = 1 << 29, MAX_WRITER_ID = 0xFFF;

    /** The writer id in a ROW__ID's bucket number (metastore/acid/bucket.py). */
    static int writerId(int bucket) {
        return bucket >>> 29 == 1 ? bucket >>> 16 & MAX_WRITER_ID : bucket;
    }

    /** One file, with the notes in its footer that Hive wants (metastore/acid/orc_footer.py). */
    static class Events implements OrcFile.WriterCallback {
        private static final int MANY = 1024, FEW = 64;
        private final Path path;
        private final int kind;
        private final org.apache.orc.Writer file;
        private final VectorizedRowBatch batch;
        private final long[][] numbers = new long[ROW][];
        private final StructColumnVector row;
        private final Column[] columns;
        private final StringBuilder index = new StringBuilder();
        private long rows, lastOriginal = -1, lastBucket, lastRowId, times, mostTimes;
        private long[] mostRepeated = {};
        private int lowest = Integer.MAX_VALUE, highest = -1;
        private String lastFlushed = "";

        Events(Path path, StructType events, Configuration settings, int kind) throws IOException {
            this.path = path;
            this.kind = kind;
            StructType type = (StructType) events.fields()[ROW].dataType();
            TypeDescription schema = OrcUtils.orcTypeDescription(events);
            boolean mayBeLong = type.catalogString().contains("array<") || type.catalogString().contains("map<");
            this.file = OrcFile.createWriter(
                path, OrcOutputFormat.buildOptions(settings).setSchema(schema).callback(this));
            OrcUtils.addSparkVersionMetadata(file);
            this.batch = schema.createRowBatch(mayBeLong ? FEW : MANY);
            for (int column = 0; column < ROW; ++column) numbers[column] = ((LongColumnVector) batch.cols[column]).vector;
            this.row = (StructColumnVector) batch.cols[ROW];
            this.columns = new Column[type.length()];
            Object ofRow = schema.getChildren().get(ROW);
            int place = 0;
            for (TypeDescription ofColumn : ((TypeDescription) ofRow).getChildren()) {
                columns[place] = new Column(type.fields()[place], ofColumn, row.fields[place], place);
                ++place;
            }
        }

        /** "change": where the row is, null for none. */
        void write(long original, int bucket, long rowId, long current, InternalRow change) throws IOException {
            if (batch.size == batch.getMaxSize()) flush();
            int at = batch.size;
            numbers[OPERATION][at] = kind;
            numbers[ORIGINAL][at] = original;
            numbers[BUCKET][at] = bucket;
            numbers[ROW_ID][at] = rowId;
            numbers[CURRENT][at] = current;
            if (change == null || change.isNullAt(ROW)) {
                setNull(row, at);
            } else {
                InternalRow values = change.getStruct(ROW, columns.length);
                for (int place = 0; place < columns.length; ++place) columns[place].set(at, values);
            }
            batch.size = at + 1;
            note(original, bucket, rowId);
        }

        private void note(long original, int bucket, long rowId) {
            boolean isSame = original == lastOriginal && bucket == lastBucket && rowId == lastRowId;
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

        private void flush() throws IOException {
            lastFlushed = lastOriginal + "," + lastBucket + "," + lastRowId + ";";
            file.addRowBatch(batch);
            batch.reset();
        }

        /** A stripe ends with what was given to ORC last. */
        @Override
        public void preStripeWrite(OrcFile.WriterContext context) {
            index.append(lastFlushed);
            lastFlushed = "";
        }

        /** ORC says this before it writes the last stripe. */
        @Override
        public void preFooterWrite(OrcFile.WriterContext context) {
            index.append(lastFlushed);
            file.addUserMetadata("hive.acid.key.index", ByteBuffer.wrap(index.toString().getBytes()));
            String stats = kind == DELETE ? "0,0," + rows : rows + ",0,0";
            file.addUserMetadata("hive.acid.stats", ByteBuffer.wrap(stats.getBytes()));
            file.addUserMetadata("hive.acid.version", ByteBuffer.wrap("2".getBytes()));
        }

        /** The file's report, once it is complete: FileReport in metastore/spark/write/event_format.py. */
        String finished(long updates) throws IOException {
            if (batch.size > 0) flush();
            file.close();
            Map<String, Object> report = new LinkedHashMap<>();
            report.put("rows", rows);
            report.put("lowest_writer", lowest);
            report.put("highest_writer", highest);
            report.put("updates", updates);
            report.put("repeated", mostRepeated);
            report.put("times", mostTimes);
            report.put("file", place());
            return Messages.text(report);
        }

        /** The file's path from where Spark puts its files, whatever directory the attempt writes to. */
        private String place() {
            String place = path.getName();
            for (Path above = path.getParent(); above.getName().indexOf('=') > 0; above = above.getParent()) {
                place = above.getName() + "/" + place;
            }
            return place;
        }

        static void setNull(ColumnVector vector, int at) {
            vector.noNulls = false;
            vector.isNull[at] = true;
        }
    }

    /** A column of "row" in a file. Most types go straight to ORC's vector, the others through Spark's converter. */
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
                Events.setNull(vector, at);
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
