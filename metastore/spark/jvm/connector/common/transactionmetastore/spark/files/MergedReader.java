package transactionmetastore.spark.files;

import java.io.IOException;
import java.io.Serializable;
import java.nio.charset.StandardCharsets;
import java.util.Comparator;
import java.util.Iterator;
import java.util.List;
import java.util.NoSuchElementException;
import java.util.PriorityQueue;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hive.ql.exec.vector.LongColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.VectorizedRowBatch;
import org.apache.hadoop.mapred.JobConf;
import org.apache.orc.OrcFile;
import org.apache.orc.Reader;
import org.apache.orc.RecordReader;
import org.apache.orc.StripeInformation;
import org.apache.orc.TypeDescription;
import org.apache.orc.mapred.OrcInputFormat;
import org.apache.spark.TaskContext;
import org.apache.spark.broadcast.Broadcast;
import org.apache.spark.sql.execution.datasources.PartitionedFile;
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
 * A reader that merges the events of several files by ROW__ID. It runs in Spark's tasks. Among the events of one row,
 * delete events come first, the latest of them first. Each file must be sorted in this order.
 *
 * A task reads one range of ROW__IDs. To find its beginning in a file, the reader skips whole stripes; in the stripe where
 * the range may begin it reads only the ids. A file is opened when the merge reaches the lowest write id that the file may
 * hold, and closed after its last event. So insert deltas, which share no write ids, are open one at a time.
 */
public class MergedReader extends AbstractFunction1<Object, Object> implements Serializable {
    private static final long serialVersionUID = 1L;
    static final int ORIGINAL = 1, BUCKET = 2, ROW_ID = 3, CURRENT = 4, MARK = 6;
    static final String INDEX = "hive.acid.key.index";
    /** The part of the error's text that names an unsorted file; metastore/spark/compaction/merged.py looks for it. */
    static final String UNSORTED = "is not in the order of its ROW__IDs";

    private final Broadcast<?> sent;
    private final StructType events;
    private final String schema;
    private final int[] places;
    private final int capacity, small;

    /**
     * Creates a reader. "sent": the settings, and then for each task its files, column by column, and its range, as
     * MergedEvents.scan describes them.
     */
    public MergedReader(Broadcast<?> sent, StructType events, String schema, int[] places, int capacity, int small) {
        this.sent = sent;
        this.events = events;
        this.schema = schema;
        this.places = places;
        this.capacity = capacity;
        this.small = small;
    }

    @Override
    public Object apply(Object argument) {
        Merge merge = new Merge(this, (int) ((PartitionedFile) argument).modificationTime());
        if (TaskContext.get() != null) TaskContext.get().addTaskCompletionListener((TaskCompletionListener) merge);
        Iterator<Object> rows = merge;
        return CollectionConverters.asScala(rows);
    }

    private Object sent(int place) {
        return ((Object[]) sent.value())[place];
    }

    /** The events of a task. All are the same object, which each call moves to the next event. */
    static final class Merge implements Iterator<Object>, TaskCompletionListener {
        private final MergedReader request;
        private final String[] paths;
        private final long[] sizes, lowest, deletes, from, to;
        private final PriorityQueue<Object> others = new PriorityQueue<>(new InOrder());
        private final JobConf settings;
        private Reader.Options wanted;
        private Cursor first;
        private boolean isTaken;
        private int opened;

        Merge(MergedReader request, int task) {
            this.request = request;
            this.paths = ((String[][]) request.sent(1))[task];
            this.sizes = ((long[][]) request.sent(2))[task];
            this.lowest = ((long[][]) request.sent(3))[task];
            this.deletes = ((long[][]) request.sent(4))[task];
            this.from = ((long[][]) request.sent(5))[task];
            this.to = ((long[][]) request.sent(6))[task];
            Configuration given = ((SerializableConfiguration) request.sent(0)).value();
            this.settings = given instanceof JobConf ? (JobConf) given : new JobConf(given);
            this.isTaken = true;
        }

        @Override
        public boolean hasNext() {
            if (isTaken) {
                isTaken = false;
                try {
                    move();
                } catch (IOException error) {
                    Platform.throwException(error);
                }
            }
            return first != null;
        }

        @Override
        public Object next() {
            if (!hasNext()) throw new NoSuchElementException();
            isTaken = true;
            return first.event();
        }

        private void move() throws IOException {
            if (first != null && !first.move()) first = null;
            if (first == null) first = (Cursor) others.poll();
            while (opened < paths.length && (first == null || lowest[opened] <= first.original)) {
                Cursor file = open(opened++);
                if (file == null || !file.move()) continue;
                if (first == null) {
                    first = file;
                } else {
                    others.add(file);
                }
            }
            if (!others.isEmpty() && InOrder.compared((Cursor) others.peek(), first) < 0) {
                others.add(first);
                first = (Cursor) others.poll();
            }
            if (first != null && to.length > 0 && !isBefore(first.original, first.bucket, first.rowId, to)) end();
        }

        /** Ends the merge. */
        private void end() throws IOException {
            close();
            first = null;
            others.clear();
            opened = paths.length;
        }

        /** Opens a file at the beginning of the range; null if the file ends before it. */
        private Cursor open(int place) throws IOException {
            Path path = new Path(paths[place]);
            OrcFile.ReaderOptions how = OrcFile.readerOptions(settings);
            Reader source = sizes[place] <= request.small
                ? SmallOrcFile.open(path, (int) sizes[place], how) : OrcFile.createReader(path, how);
            if (wanted == null) wanted = OrcInputFormat.buildOptions(settings, source, 0, 0);
            long before = from.length > 0 ? rowsBefore(source) : 0;
            if (before > 0 && before == source.getNumberOfRows()) {
                source.close();
                return null;
            }
            RecordReader rows = source.rows(wanted.clone().range(0, Long.MAX_VALUE));
            if (before > 0) rows.seekToRow(before);
            return new Cursor(request, rows, paths[place], deletes[place] == 1);
        }

        /** Returns the number of a file's rows before the range. */
        private long rowsBefore(Reader file) throws IOException {
            List<?> stripes = file.getStripes();
            String[] ends = index(file).split(";");
            long rows = 0;
            for (int place = 0; place < stripes.size(); ++place) {
                StripeInformation stripe = (StripeInformation) stripes.get(place);
                String[] end = ends.length == stripes.size() ? ends[place].split(",") : new String[0];
                if (end.length != 3 || !isBefore(Long.parseLong(end[0]), Long.parseLong(end[1]), Long.parseLong(end[2]), from)) {
                    long inside = rowsBefore(file, stripe);
                    rows += inside;
                    if (inside < stripe.getNumberOfRows()) return rows;
                } else {
                    rows += stripe.getNumberOfRows();
                }
            }
            return rows;
        }

        private static String index(Reader file) {
            return file.hasMetadataValue(INDEX) ? StandardCharsets.UTF_8.decode(file.getMetadataValue(INDEX)).toString() : "";
        }

        /** Returns the number of a stripe's rows before the range; only ids are read. */
        private long rowsBefore(Reader file, StripeInformation stripe) throws IOException {
            Reader.Options options = wanted.clone().range(stripe.getOffset(), stripe.getLength());
            boolean[] columns = new boolean[options.getInclude().length];
            columns[0] = columns[1 + ORIGINAL] = columns[1 + BUCKET] = columns[1 + ROW_ID] = true;
            RecordReader ids = file.rows(options.include(columns));
            try {
                VectorizedRowBatch batch = TypeDescription.fromString(request.schema).createRowBatch();
                long rows = 0;
                while (ids.nextBatch(batch)) {
                    for (int row = 0; row < batch.size; ++row) {
                        if (!isBefore(number(batch, ORIGINAL, row), number(batch, BUCKET, row), number(batch, ROW_ID, row), from)) {
                            return rows + row;
                        }
                    }
                    rows += batch.size;
                }
                return rows;
            } finally {
                ids.close();
            }
        }

        private static long number(VectorizedRowBatch batch, int column, int row) {
            LongColumnVector numbers = (LongColumnVector) batch.cols[column];
            return numbers.vector[numbers.isRepeating ? 0 : row];
        }

        private static boolean isBefore(long original, long bucket, long rowId, long[] other) {
            if (original != other[0]) return original < other[0];
            return bucket != other[1] ? bucket < other[1] : rowId < other[2];
        }

        private void close() throws IOException {
            if (first != null) first.close();
            for (Object other : others) ((Cursor) other).close();
        }

        @Override
        public void onTaskCompletion(TaskContext context) {
            try {
                close();
            } catch (IOException error) {
                Platform.throwException(error);
            }
        }
    }

    /** A file and its next event. The file is closed after the last event. */
    static final class Cursor {
        private final String path;
        private final OrcBatches source;
        private final boolean isOfDeletes;
        private final ColumnarBatch events, shown;
        private int at, end;
        long original = -1, rowId, current;
        int bucket;

        Cursor(MergedReader request, RecordReader rows, String path, boolean isOfDeletes) {
            int[] all = new int[request.events.length()];
            for (int place = 0; place < all.length; ++place) all[place] = place;
            this.path = path;
            this.isOfDeletes = isOfDeletes;
            this.source = new OrcBatches(rows, request.schema, request.events.fields(), all, request.capacity);
            this.events = source.batch();
            ColumnVector[] columns = new ColumnVector[request.places.length];
            for (int column = 0; column < columns.length; ++column) {
                int place = request.places[column];
                columns[column] = place == MARK ? marks(request.capacity) : events.column(place);
            }
            this.shown = new ColumnarBatch(columns);
        }

        private ColumnVector marks(int capacity) {
            OnHeapColumnVector marks = new OnHeapColumnVector(capacity, DataTypes.BooleanType);
            marks.putBooleans(0, capacity, isOfDeletes);
            return marks;
        }

        boolean move() throws IOException {
            if (++at >= end) {
                if (!source.nextKeyValue()) {
                    close();
                    return false;
                }
                at = 0;
                end = events.numRows();
                shown.setNumRows(end);
            }
            long lastOriginal = original, lastRowId = rowId;
            int lastBucket = bucket;
            original = events.column(ORIGINAL).getLong(at);
            bucket = events.column(BUCKET).getInt(at);
            rowId = events.column(ROW_ID).getLong(at);
            current = events.column(CURRENT).getLong(at);
            boolean isBefore = original != lastOriginal ? original < lastOriginal
                : bucket != lastBucket ? bucket < lastBucket : rowId < lastRowId;
            if (isBefore) throw new IOException(path + " " + UNSORTED);
            return true;
        }

        Object event() {
            return shown.getRow(at);
        }

        void close() throws IOException {
            source.close();
        }
    }

    /** The order of events: by ROW__ID, delete events first, the latest one first. */
    static final class InOrder implements Comparator<Object> {
        @Override
        public int compare(Object one, Object other) {
            return compared((Cursor) one, (Cursor) other);
        }

        static int compared(Cursor one, Cursor other) {
            if (one.original != other.original) return one.original < other.original ? -1 : 1;
            if (one.bucket != other.bucket) return one.bucket < other.bucket ? -1 : 1;
            if (one.rowId != other.rowId) return one.rowId < other.rowId ? -1 : 1;
            if (one.isOfDeletes != other.isOfDeletes) return one.isOfDeletes ? -1 : 1;
            return Long.compare(other.current, one.current);
        }
    }
}
