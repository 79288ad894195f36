import java.io.IOException;
import java.io.Serializable;
import java.util.Collections;
import java.util.Iterator;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.mapred.JobConf;
import org.apache.hadoop.mapreduce.JobID;
import org.apache.hadoop.mapreduce.TaskAttemptID;
import org.apache.hadoop.mapreduce.TaskID;
import org.apache.hadoop.mapreduce.TaskType;
import org.apache.hadoop.mapreduce.lib.input.FileSplit;
import org.apache.hadoop.mapreduce.task.TaskAttemptContextImpl;
import org.apache.orc.TypeDescription;
import org.apache.spark.TaskContext;
import org.apache.spark.broadcast.Broadcast;
import org.apache.spark.memory.MemoryMode;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.execution.datasources.PartitionedFile;
import org.apache.spark.sql.execution.datasources.RecordReaderIterator;
import org.apache.spark.sql.execution.datasources.orc.OrcColumnarBatchReader;
import org.apache.spark.sql.execution.vectorized.OnHeapColumnVector;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.util.SerializableConfiguration;
import org.apache.spark.util.TaskCompletionListener;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.AbstractFunction1;

/**
 * What runs in the tasks: an ACID file's rows with the columns of "row" beside those of the event.
 *
 * Spark's own vectorized reader reads the file. ORC is always asked for the six fields of an event, since it takes any
 * other request for one of fields inside "row", but of the six it reads only those that are included. "places" says for
 * each column of the result where it is: a field of the event (0 to 4), whether the row is deleted (5), or a field of
 * "row" (from 6 on). Deleted rows are looked up in the table that metastore/spark/deleted.py makes: five arrays, in the
 * order of its fields.
 */
public class AcidOrcReader extends AbstractFunction1 implements Serializable {
    public static final int DELETED = 5, IN_ROW = 6;
    static final int WRITE_ID = 1, BUCKET = 2, ROW_ID = 3, ROW = 5;
    static final int CHUNK_BITS = 22, BUCKET_BITS = 31, HIGH_BITS = 41;

    final Broadcast settings;
    final StructType events;
    final String schema;
    final int[] places;
    final StructType rows;
    final int capacity;
    final Broadcast deleted;
    final int shift;
    private transient JobConf job;

    /** "rows": the type of the result when it is to be rows, null when batches. "deleted": null when nothing is. */
    public AcidOrcReader(
            Broadcast settings, StructType events, String schema, int[] places, StructType rows, int capacity,
            Broadcast deleted, int shift) {
        this.settings = settings;
        this.events = events;
        this.schema = schema;
        this.places = places;
        this.rows = rows;
        this.capacity = capacity;
        this.deleted = deleted;
        this.shift = shift;
    }

    public Object apply(Object argument) {
        PartitionedFile file = (PartitionedFile) argument;
        TaskAttemptID attempt = new TaskAttemptID(new TaskID(new JobID(), TaskType.MAP, 0), 0);
        OrcColumnarBatchReader reader = new OrcColumnarBatchReader(capacity, MemoryMode.ON_HEAP);
        Batches batches = new Batches(this, reader, file.modificationTime());
        if (TaskContext.get() != null) TaskContext.get().addTaskCompletionListener((TaskCompletionListener) batches);
        try {
            reader.initialize(
                new FileSplit(file.toPath(), file.start(), file.length(), new String[0]),
                new TaskAttemptContextImpl(job(), attempt));
        } catch (IOException error) {
            Platform.throwException(error);
        }
        int[] columns = new int[events.length()], none = new int[events.length()];
        for (int place = 0; place < columns.length; ++place) {
            columns[place] = place;
            none[place] = -1;
        }
        reader.initBatch(TypeDescription.fromString(schema), events.fields(), columns, none, file.partitionValues());
        return CollectionConverters.asScala(rows == null ? (Iterator) batches : (Iterator) new Rows(batches, rows));
    }

    /** The settings. Hadoop copies all of them for each file when they are not a job's, at the cost of opening it. */
    private JobConf job() {
        if (job == null) {
            Configuration sent = ((SerializableConfiguration) settings.value()).value();
            job = sent instanceof JobConf ? (JobConf) sent : new JobConf(sent);
        }
        return job;
    }

    /** The batches of one file, which is closed after the last one, or when the task ends. */
    static final class Batches implements Iterator, TaskCompletionListener {
        private final AcidOrcReader asked;
        private final RecordReaderIterator source;
        private final long directory;
        private ColumnarBatch batch;
        private OnHeapColumnVector marks;
        private long[] versions, parts, starts, ends, words;

        Batches(AcidOrcReader asked, OrcColumnarBatchReader reader, long directory) {
            this.asked = asked;
            this.source = new RecordReaderIterator(reader);
            this.directory = directory;
        }

        public void onTaskCompletion(TaskContext context) {
            source.close();
        }

        public boolean hasNext() {
            return source.hasNext();
        }

        public Object next() {
            ColumnarBatch events = (ColumnarBatch) source.next();
            if (batch == null) batch = arranged(events);
            if (words != null) mark(events);
            batch.setNumRows(events.numRows());
            return batch;
        }

        public void remove() {
            throw new UnsupportedOperationException();
        }

        /** The columns of the result. They stay the same objects from batch to batch. */
        private ColumnarBatch arranged(ColumnarBatch events) {
            ColumnVector[] columns = new ColumnVector[asked.places.length];
            for (int column = 0; column < columns.length; ++column) {
                int place = asked.places[column];
                if (place == DELETED) {
                    columns[column] = deletions();
                } else {
                    columns[column] = place < IN_ROW ? events.column(place) : events.column(ROW).getChild(place - IN_ROW);
                }
            }
            return new ColumnarBatch(columns);
        }

        private ColumnVector deletions() {
            marks = new OnHeapColumnVector(asked.capacity, DataTypes.BooleanType);
            if (asked.deleted != null) {
                long[][] table = (long[][]) asked.deleted.value();
                versions = table[0];
                parts = table[1];
                starts = table[2];
                ends = table[3];
                words = table[4];
            }
            return marks;
        }

        /** Neighbours are most often of the same chunk: it is looked up only where it changes. */
        private void mark(ColumnarBatch events) {
            ColumnVector writeIds = events.column(WRITE_ID), buckets = events.column(BUCKET);
            ColumnVector rowIds = events.column(ROW_ID);
            int count = events.numRows();
            long version = -1, part = -1, start = 0, end = 0;
            for (int row = 0; row < count; ++row) {
                long rowId = rowIds.getLong(row);
                long ofRow = writeIds.getLong(row) << BUCKET_BITS | (long) buckets.getInt(row);
                long around = directory << HIGH_BITS | rowId >> CHUNK_BITS;
                if (ofRow != version || around != part) {
                    version = ofRow;
                    part = around;
                    int place = (int) (((version ^ part << asked.shift) & Long.MAX_VALUE) % (long) versions.length);
                    boolean known = versions[place] == version && parts[place] == part;
                    start = known ? starts[place] : 0L;
                    end = known ? ends[place] : 0L;
                }
                long word = start + ((rowId & (1L << CHUNK_BITS) - 1L) >> 6);
                marks.putBoolean(row, word < end && (words[(int) word] >>> (int) (rowId & 63L) & 1L) != 0L);
            }
        }
    }

    /** The same, row by row. */
    static final class Rows implements Iterator {
        private final Batches batches;
        private final UnsafeProjection projection;
        private Iterator current = Collections.emptyIterator();

        Rows(Batches batches, StructType type) {
            this.batches = batches;
            this.projection = UnsafeProjection.create(type);
        }

        public boolean hasNext() {
            while (!current.hasNext() && batches.hasNext()) current = ((ColumnarBatch) batches.next()).rowIterator();
            return current.hasNext();
        }

        public Object next() {
            if (!hasNext()) throw new java.util.NoSuchElementException();
            return projection.apply((InternalRow) current.next());
        }

        public void remove() {
            throw new UnsupportedOperationException();
        }
    }
}
