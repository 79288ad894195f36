package transactionmetastore.spark.files;

import java.io.IOException;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import java.util.NoSuchElementException;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hive.ql.exec.Utilities;
import org.apache.hadoop.io.Text;
import org.apache.hadoop.io.Writable;
import org.apache.hadoop.mapred.FileSplit;
import org.apache.hadoop.mapred.InputFormat;
import org.apache.hadoop.mapred.JobConf;
import org.apache.hadoop.mapred.RecordReader;
import org.apache.hadoop.mapred.Reporter;
import org.apache.hadoop.mapred.SequenceFileInputFormat;
import org.apache.hadoop.util.ReflectionUtils;
import org.apache.spark.TaskContext;
import org.apache.spark.api.python.PythonUtils;
import org.apache.spark.broadcast.Broadcast;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.SpecificInternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.types.DataTypeUtils;
import org.apache.spark.sql.execution.datasources.PartitionedFile;
import org.apache.spark.sql.hive.HadoopTableReader$;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.types.UTF8String;
import org.apache.spark.util.SerializableConfiguration;
import org.apache.spark.util.TaskCompletionListener;
import scala.Tuple2;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.AbstractFunction1;

/** A reader of the rows in a part of a file, by the table's own input format and SerDe. It runs in the tasks. */
public class SerdeReader extends AbstractFunction1<Object, Object> implements Serializable {
    private static final long serialVersionUID = 1L;
    private static final int LONGEST_NAME = 1000;
    private static final List<String> RECORDS = Arrays.asList(
        "org.apache.hadoop.io.BytesWritable", "org.apache.hadoop.io.Text", "org.apache.hadoop.io.NullWritable",
        "org.apache.hadoop.io.LongWritable", "org.apache.hadoop.io.IntWritable");
    final Broadcast<?> settings;
    final SerdeTable table;
    final StructType wanted;

    public SerdeReader(Broadcast<?> settings, SerdeTable table, StructType wanted) {
        this.settings = settings;
        this.table = table;
        this.wanted = wanted;
    }

    @Override
    public Object apply(Object argument) {
        PartitionedFile file = (PartitionedFile) argument;
        Configuration configuration = ((SerializableConfiguration) settings.value()).value();
        try {
            JobConf job = new JobConf(configuration);
            Utilities.copyTableJobPropertiesToConf(table.described(), job);
            Object format = ReflectionUtils.newInstance(table.input(), job);
            FileSplit part = new FileSplit(file.toPath(), file.start(), file.length(), new String[0]);
            if (format instanceof SequenceFileInputFormat) requireKnownRecords(file.toPath(), job);
            Records records = new Records(((InputFormat<?, ?>) format).getRecordReader(part, job, Reporter.NULL));
            if (TaskContext.get() != null) TaskContext.get().addTaskCompletionListener((TaskCompletionListener) records);
            for (int line = file.start() == 0 ? table.header() : 0; line > 0 && records.hasNext(); --line) records.next();
            UnsafeProjection projection = UnsafeProjection.create(wanted);
            Iterator<Object> rows = table.isRaw() ? new Raw(records, wanted.length(), projection)
                : new Rows(filled(records, configuration), projection);
            return CollectionConverters.asScala(rows);
        } catch (Exception error) {
            Platform.throwException(error);
            return null;
        }
    }

    /**
     * Refuses a sequence file with unexpected record classes: the file names the classes, and its reader would create
     * objects of any class.
     */
    static void requireKnownRecords(Path path, Configuration settings) throws IOException {
        FSDataInputStream in = path.getFileSystem(settings).open(path);
        try {
            byte[] magic = new byte[4];
            in.readFully(magic);
            if (magic[0] != 'S' || magic[1] != 'E' || magic[2] != 'Q') return;  // its reader reports that it is no such file
            String key = Text.readString(in, LONGEST_NAME), value = Text.readString(in, LONGEST_NAME);
            if (!RECORDS.contains(key) || !RECORDS.contains(value)) {
                throw new IOException(path + " has records of " + key + " and " + value + ", which are not made here: only " + RECORDS);
            }
        } finally {
            in.close();
        }
    }

    @SuppressWarnings("unchecked")  // Spark's functions take Object here
    private scala.collection.Iterator<?> filled(Iterator<?> records, Configuration configuration) throws Exception {
        org.apache.hadoop.hive.serde2.AbstractSerDe serde = table.serde(new JobConf(configuration), table.properties());
        scala.collection.immutable.Seq<?> attributes = DataTypeUtils.toAttributes(wanted);
        List<Tuple2<Attribute, Object>> places = new ArrayList<>();
        for (int place = 0; place < wanted.length(); ++place) {
            places.add(new Tuple2<Attribute, Object>((Attribute) attributes.apply(place), place));
        }
        return HadoopTableReader$.MODULE$.fillObject(
            CollectionConverters.asScala((Iterator<Writable>) records), serde, PythonUtils.toSeq(places), new SpecificInternalRow(wanted), serde);
    }

    /** The values of a record reader, which uses one object for all of them. */
    static class Records implements Iterator<Object>, TaskCompletionListener {
        private final RecordReader<Object, Object> reader;
        private final Object key, value;
        private boolean isAsked, isThere, isClosed;

        @SuppressWarnings("unchecked")  // only the input format knows the types
        Records(RecordReader<?, ?> reader) {
            this.reader = (RecordReader<Object, Object>) reader;
            this.key = reader.createKey();
            this.value = reader.createValue();
        }

        @Override
        public boolean hasNext() {
            if (!isAsked && !isClosed) {
                try {
                    isThere = reader.next(key, value);
                } catch (IOException error) {
                    Platform.throwException(error);
                }
                isAsked = true;
                if (!isThere) onTaskCompletion(null);
            }
            return isThere;
        }

        @Override
        public Object next() {
            if (!hasNext()) throw new NoSuchElementException();
            isAsked = false;
            return value;
        }

        @Override
        public void onTaskCompletion(TaskContext context) {
            if (isClosed) return;
            isClosed = true;
            isThere = false;
            try {
                reader.close();
            } catch (IOException error) {
                Platform.throwException(error);
            }
        }
    }

    /** Spark's rows, in the form that all of its operators accept. */
    static class Rows implements Iterator<Object> {
        private final scala.collection.Iterator<?> rows;
        private final UnsafeProjection projection;

        Rows(scala.collection.Iterator<?> rows, UnsafeProjection projection) {
            this.rows = rows;
            this.projection = projection;
        }

        @Override
        public boolean hasNext() {
            return rows.hasNext();
        }

        @Override
        public Object next() {
            return projection.apply((InternalRow) rows.next());
        }
    }

    /** Whole records of the file, undecoded. */
    static class Raw implements Iterator<Object> {
        private final Iterator<?> records;
        private final GenericInternalRow row;
        private final UnsafeProjection projection;

        Raw(Iterator<?> records, int columns, UnsafeProjection projection) {
            this.records = records;
            this.row = new GenericInternalRow(columns);
            this.projection = projection;
        }

        @Override
        public boolean hasNext() {
            return records.hasNext();
        }

        @Override
        public Object next() {
            Text line = (Text) records.next();
            for (int column = 0; column < row.numFields(); ++column) {
                row.update(column, UTF8String.fromBytes(line.getBytes(), 0, line.getLength()));
            }
            return projection.apply(row);
        }
    }
}
