import java.io.IOException;
import java.io.UncheckedIOException;
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
import org.apache.orc.IntegerColumnStatistics;
import org.apache.orc.OrcFile;
import org.apache.orc.Reader;
import org.apache.orc.RecordReader;
import org.apache.orc.StripeInformation;
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

/**
 * Spark's ORC source, with a writer for events that fills ORC's vectors itself.
 *
 * Spark's own makes a nested struct anew for each row, and everything that converts its values. Of an event that is
 * "row", with all of the table's columns. Compiled by the compiler that Spark has for its queries, which knows no
 * generics; executors get it as a jar.
 */
public class AcidOrcWriter extends OrcFileFormat {
    private static final int OPERATION = 0, ORIGINAL = 1, BUCKET = 2, ROW_ID = 3, CURRENT = 4, ROW = 5;

    /** Let a writer that has got everything but its format write here. Spark finds a format by its class's name. */
    public void save(DataFrameWriter writer, String path) {
        Thread thread = Thread.currentThread();
        ClassLoader usual = thread.getContextClassLoader();
        thread.setContextClassLoader(new KnowingUs(usual));
        try {
            writer.format(getClass().getName()).save(path);
        } finally {
            thread.setContextClassLoader(usual);
        }
    }

    /** What knows all classes that its parent knows, and this one. */
    public static class KnowingUs extends ClassLoader {
        public KnowingUs(ClassLoader parent) {
            super(parent);
        }

        protected Class findClass(String name) throws ClassNotFoundException {
            if (name.equals(AcidOrcWriter.class.getName())) return AcidOrcWriter.class;
            throw new ClassNotFoundException(name);
        }
    }

    /** Of a finished file: rows;lowest bucket,highest bucket;write id,bucket,row id of each stripe's last event;... */
    public String summary(String path, Configuration settings) throws IOException {
        Reader reader = OrcFile.createReader(new Path(path), OrcFile.readerOptions(settings));
        try {
            if (reader.getNumberOfRows() == 0) return "0";
            IntegerColumnStatistics buckets = (IntegerColumnStatistics) reader.getStatistics()[BUCKET + 1];
            StringBuffer told = new StringBuffer().append(reader.getNumberOfRows());
            told.append(";").append(buckets.getMinimum()).append(",").append(buckets.getMaximum());
            TypeDescription schema = reader.getSchema();
            boolean[] wanted = new boolean[schema.getMaximumId() + 1];
            wanted[0] = wanted[ORIGINAL + 1] = wanted[BUCKET + 1] = wanted[ROW_ID + 1] = true;
            VectorizedRowBatch batch = schema.createRowBatch(1);
            RecordReader rows = reader.rows(reader.options().include(wanted));
            try {
                long last = -1;
                for (int stripe = 0; stripe < reader.getStripes().size(); ++stripe) {
                    last += ((StripeInformation) reader.getStripes().get(stripe)).getNumberOfRows();
                    rows.seekToRow(last);
                    rows.nextBatch(batch);
                    told.append(";").append(number(batch, ORIGINAL)).append(",").append(number(batch, BUCKET));
                    told.append(",").append(number(batch, ROW_ID));
                }
            } finally {
                rows.close();
            }
            return told.toString();
        } finally {
            reader.close();
        }
    }

    private static long number(VectorizedRowBatch batch, int column) {
        return ((LongColumnVector) batch.cols[column]).vector[0];
    }

    public OutputWriterFactory prepareWrite(
            SparkSession spark, Job job, scala.collection.immutable.Map options, StructType events) {
        return new Factory(super.prepareWrite(spark, job, options, events));
    }

    /** What goes from the driver to the tasks. */
    public static class Factory extends OutputWriterFactory {
        private static final long serialVersionUID = 1L;
        private final OutputWriterFactory plain;

        public Factory(OutputWriterFactory plain) {
            this.plain = plain;
        }

        public String getFileExtension(TaskAttemptContext context) {
            return plain.getFileExtension(context);
        }

        public OutputWriter newInstance(String path, StructType events, TaskAttemptContext context) {
            try {
                return new Events(path, events, context.getConfiguration());
            } catch (IOException error) {
                throw new UncheckedIOException(error);
            }
        }
    }

    /** One file. */
    public static class Events extends OutputWriter {
        private static final int MANY = 1024, FEW = 64;
        private final String path;
        private final org.apache.orc.Writer file;
        private final VectorizedRowBatch batch;
        private final StructColumnVector row;
        private final Column[] columns;

        public Events(String path, StructType events, Configuration settings) throws IOException {
            this.path = path;
            StructType type = (StructType) events.fields()[ROW].dataType();
            TypeDescription schema = OrcUtils.orcTypeDescription(events);
            boolean mayBeLong = type.catalogString().contains("array<") || type.catalogString().contains("map<");
            this.file = OrcFile.createWriter(
                new Path(path), OrcOutputFormat.buildOptions(settings).setSchema(schema));
            OrcUtils.addSparkVersionMetadata(file);
            this.batch = schema.createRowBatch(mayBeLong ? FEW : MANY);
            this.row = (StructColumnVector) batch.cols[ROW];
            this.columns = new Column[type.length()];
            for (int place = 0; place < columns.length; ++place) {
                TypeDescription kind = (TypeDescription) ((TypeDescription) schema.getChildren().get(ROW))
                    .getChildren().get(place);
                columns[place] = new Column(type.fields()[place], kind, row.fields[place], place);
            }
        }

        public String path() {
            return path;
        }

        public void write(InternalRow event) {
            if (batch.size == batch.getMaxSize()) flush();
            int at = batch.size;
            for (int column = 0; column < ROW; ++column) {
                if (event.isNullAt(column)) throw new IllegalStateException("Only the row of an event may be NULL");
                long number = column == OPERATION || column == BUCKET ? event.getInt(column) : event.getLong(column);
                ((LongColumnVector) batch.cols[column]).vector[at] = number;
            }
            if (event.isNullAt(ROW)) {
                setNull(row, at);
            } else {
                InternalRow values = event.getStruct(ROW, columns.length);
                for (int place = 0; place < columns.length; ++place) columns[place].set(at, values);
            }
            batch.size = at + 1;
        }

        public void close() {
            if (batch.size > 0) flush();
            try {
                file.close();
            } catch (IOException error) {
                throw new UncheckedIOException(error);
            }
        }

        private void flush() {
            try {
                file.addRowBatch(batch);
            } catch (IOException error) {
                throw new UncheckedIOException(error);
            }
            batch.reset();
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
