package transactionmetastore.spark.files;

import java.io.IOException;
import java.io.Serializable;
import java.util.Arrays;
import java.util.Collections;
import java.util.Iterator;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hive.ql.exec.vector.LongColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.VectorizedRowBatch;
import org.apache.hadoop.mapred.JobConf;
import org.apache.orc.OrcFile;
import org.apache.orc.OrcProto;
import org.apache.orc.Reader;
import org.apache.orc.RecordReader;
import org.apache.orc.mapred.OrcInputFormat;
import org.apache.spark.TaskContext;
import org.apache.spark.broadcast.Broadcast;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.execution.datasources.PartitionedFile;
import org.apache.spark.sql.execution.datasources.RecordReaderIterator;
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
 * A reader of an ACID file's rows, with the columns of "row" beside those of the event; it runs in the tasks.
 *
 * It opens the files, small ones whole (SmallOrcFile); OrcBatches shows them in Spark's columns. The request to ORC always
 * has the six fields of an event, since ORC would look for any other request's fields inside "row"; it reads only the
 * included fields. "places" has the place of each column of the result: a field of the event (0 to 4), whether the row is
 * deleted (5), or a field of "row" (from 6 on). DeletedBits has the deleted rows.
 */
public class AcidOrcReader extends AbstractFunction1<Object, Object> implements Serializable {
    private static final long serialVersionUID = 1L;
    public static final int DELETED = 5, IN_ROW = 6;

    final Broadcast<?> sent;
    final StructType events;
    final String schema;
    final int[] places;
    final StructType rows;
    final int capacity, shift, small;
    final boolean isIdWanted;
    private transient JobConf job;
    private transient Reader.Options wanted;

    /**
     * Creates a reader. "sent": the settings, and the deleted rows or null. "rows": the type of a result of rows, null for
     * batches. "small": the largest size of a file that is read whole.
     */
    public AcidOrcReader(
            Broadcast<?> sent, StructType events, String schema, int[] places, StructType rows, int capacity, int shift,
            int small) {
        this.sent = sent;
        this.events = events;
        this.schema = schema;
        this.places = places;
        this.rows = rows;
        this.capacity = capacity;
        this.shift = shift;
        this.small = small;
        this.isIdWanted = isIdWanted(places);
    }

    private static boolean isIdWanted(int[] places) {
        boolean needsIds = false;
        for (int place : places) needsIds |= place >= EventColumns.ORIGINAL && place <= EventColumns.ROW_ID;
        return needsIds;
    }

    @Override
    public Object apply(Object argument) {
        PartitionedFile file = (PartitionedFile) argument;
        long[][] deleted = (long[][]) sent(1);
        Marks marks = deleted == null ? null : new Marks(deleted, shift, file.modificationTime(), capacity);
        Batches batches = new Batches(this, reader(file, marks), marks);
        if (TaskContext.get() != null) TaskContext.get().addTaskCompletionListener((TaskCompletionListener) batches);
        Iterator<Object> result = rows == null ? batches : new Rows(batches, rows);
        return CollectionConverters.asScala(result);
    }

    private OrcBatches reader(PartitionedFile file, Marks marks) {
        int[] all = new int[events.length()];
        for (int place = 0; place < all.length; ++place) all[place] = place;
        try {
            return new OrcBatches(opened(file, marks), schema, events.fields(), all, capacity);
        } catch (IOException error) {
            Platform.throwException(error);
            throw new IllegalStateException(error);
        }
    }

    /** Returns a reader of a file's rows. "marks" wraps it, and then row ids are not read if the footer gives them. */
    private RecordReader opened(PartitionedFile file, Marks marks) throws IOException {
        OrcFile.ReaderOptions how = OrcFile.readerOptions(job());
        Reader source = file.fileSize() <= small
            ? SmallOrcFile.open(file.toPath(), (int) file.fileSize(), how) : OrcFile.createReader(file.toPath(), how);
        if (wanted == null) wanted = OrcInputFormat.buildOptions(job(), source, 0, 0);
        Reader.Options options = wanted.clone().range(file.start(), file.length());
        if (marks == null) return source.rows(options);
        if (!isIdWanted) marks.run = Run.of(source);
        if (marks.run != null) {
            boolean[] columns = Arrays.copyOf(options.getInclude(), options.getInclude().length);
            columns[1 + EventColumns.ORIGINAL] = columns[1 + EventColumns.BUCKET] = columns[1 + EventColumns.ROW_ID] = false;
            options.include(columns);
        }
        marks.source = source.rows(options);
        return marks;
    }

    /** Returns the settings as a job's. Hadoop copies any other settings for each file, which costs as much as opening it. */
    private JobConf job() {
        if (job == null) {
            Configuration settings = ((SerializableConfiguration) sent(0)).value();
            job = settings instanceof JobConf ? (JobConf) settings : new JobConf(settings);
        }
        return job;
    }

    private Object sent(int place) {
        return ((Object[]) sent.value())[place];
    }

    /** The batches of a file. The file is closed after the last batch, or when the task ends. */
    static final class Batches implements Iterator<Object>, TaskCompletionListener {
        private final AcidOrcReader request;
        private final RecordReaderIterator<?> source;
        private final Marks marks;
        private ColumnarBatch batch;

        Batches(AcidOrcReader request, OrcBatches reader, Marks marks) {
            this.request = request;
            this.source = new RecordReaderIterator<>(reader);
            this.marks = marks;
        }

        @Override
        public void onTaskCompletion(TaskContext context) {
            source.close();
        }

        @Override
        public boolean hasNext() {
            return source.hasNext();
        }

        @Override
        public Object next() {
            ColumnarBatch events = (ColumnarBatch) source.next();
            if (batch == null) batch = arranged(events);
            batch.setNumRows(events.numRows());
            return batch;
        }

        /** Returns the columns of the result; they stay the same objects from batch to batch. */
        private ColumnarBatch arranged(ColumnarBatch events) {
            ColumnVector[] columns = new ColumnVector[request.places.length];
            for (int column = 0; column < columns.length; ++column) {
                int place = request.places[column];
                if (place == DELETED) {
                    columns[column] = marks == null ? new OnHeapColumnVector(request.capacity, DataTypes.BooleanType) : marks.found;
                } else {
                    columns[column] = place < IN_ROW ? events.column(place) : events.column(EventColumns.ROW).getChild(place - IN_ROW);
                }
            }
            return new ColumnarBatch(columns);
        }
    }

    /**
     * The ids of a file's rows where these are consecutive: one write id, one bucket, and row ids without a gap.
     *
     * Rows of an ACID file are in the order of their ids, and each id is in it once. So the lowest and the highest value of
     * each column and the number of rows, all in the footer, show whether the ids are consecutive.
     */
    public static final class Run {
        public final long writeId, first;
        public final int bucket;
        final long version;

        private Run(long writeId, int bucket, long first) {
            this.writeId = writeId;
            this.bucket = bucket;
            this.version = DeletedBits.version(writeId, bucket);
            this.first = first;
        }

        /** Returns the run of ids in a file; null if there is none, or if the footer lacks the numbers. */
        @SuppressWarnings("deprecation")  // the newer method does not tell whether there is a minimum
        public static Run of(Reader file) {
            List<OrcProto.ColumnStatistics> columns = file.getOrcProtoFileStatistics();
            if (columns.size() <= 1 + EventColumns.ROW_ID) return null;
            long rows = file.getNumberOfRows();
            OrcProto.IntegerStatistics writeIds = numbers(columns, EventColumns.ORIGINAL, rows), buckets = numbers(columns, EventColumns.BUCKET, rows);
            OrcProto.IntegerStatistics rowIds = numbers(columns, EventColumns.ROW_ID, rows);
            if (writeIds == null || buckets == null || rowIds == null) return null;
            if (writeIds.getMinimum() != writeIds.getMaximum() || buckets.getMinimum() != buckets.getMaximum()) return null;
            if (rowIds.getMaximum() - rowIds.getMinimum() != rows - 1L) return null;
            return new Run(writeIds.getMinimum(), (int) buckets.getMinimum(), rowIds.getMinimum());
        }

        private static OrcProto.IntegerStatistics numbers(List<?> columns, int field, long rows) {
            OrcProto.ColumnStatistics statistics = (OrcProto.ColumnStatistics) columns.get(1 + field);
            OrcProto.IntegerStatistics numbers = statistics.getIntStatistics();
            boolean isWhole = statistics.getNumberOfValues() == rows && numbers.hasMinimum() && numbers.hasMaximum();
            return isWhole ? numbers : null;
        }
    }

    /** A reader that fills "found" for each batch: which of its rows are deleted. */
    static final class Marks implements RecordReader {
        final OnHeapColumnVector found;
        RecordReader source;
        Run run;
        private final DeletedBits deleted;

        Marks(long[][] table, int shift, long directory, int capacity) {
            this.found = new OnHeapColumnVector(capacity, DataTypes.BooleanType);
            this.deleted = new DeletedBits(table, shift, directory);
        }

        @Override
        public boolean nextBatch(VectorizedRowBatch batch) throws IOException {
            long place = source.getRowNumber();  // the position of the batch's first row, after all rows that ORC skipped
            boolean isOne = source.nextBatch(batch);
            if (isOne && run != null) {
                mark(run.first + place, batch.size);
            } else if (isOne) {
                mark((LongColumnVector) batch.cols[EventColumns.ORIGINAL], (LongColumnVector) batch.cols[EventColumns.BUCKET],
                    (LongColumnVector) batch.cols[EventColumns.ROW_ID], batch.size);
            }
            return isOne;
        }

        private void mark(long first, int count) {
            for (int row = 0; row < count; ++row) found.putBoolean(row, deleted.contains(run.version, first + row));
        }

        private void mark(LongColumnVector writeIds, LongColumnVector buckets, LongColumnVector rowIds, int count) {
            int nextWriteId = writeIds.isRepeating ? 0 : 1, nextBucket = buckets.isRepeating ? 0 : 1;
            int nextRowId = rowIds.isRepeating ? 0 : 1;
            for (int row = 0; row < count; ++row) {
                long ofRow = DeletedBits.version(writeIds.vector[row * nextWriteId], buckets.vector[row * nextBucket]);
                found.putBoolean(row, deleted.contains(ofRow, rowIds.vector[row * nextRowId]));
            }
        }

        @Override
        public long getRowNumber() throws IOException {
            return source.getRowNumber();
        }

        @Override
        public float getProgress() throws IOException {
            return source.getProgress();
        }

        @Override
        public void close() throws IOException {
            source.close();
        }

        @Override
        public void seekToRow(long row) throws IOException {
            source.seekToRow(row);
        }
    }

    /** The rows of a file, one by one. */
    static final class Rows implements Iterator<Object> {
        private final Batches batches;
        private final UnsafeProjection projection;
        private Iterator<?> current = Collections.emptyIterator();

        Rows(Batches batches, StructType type) {
            this.batches = batches;
            this.projection = UnsafeProjection.create(type);
        }

        @Override
        public boolean hasNext() {
            while (!current.hasNext() && batches.hasNext()) current = ((ColumnarBatch) batches.next()).rowIterator();
            return current.hasNext();
        }

        @Override
        public Object next() {
            if (!hasNext()) throw new java.util.NoSuchElementException();
            return projection.apply((InternalRow) current.next());
        }
    }
}
