package transactionmetastore.spark.read;

import java.io.IOException;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import java.util.TreeMap;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hive.ql.exec.vector.LongColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.VectorizedRowBatch;
import org.apache.orc.OrcFile;
import org.apache.orc.Reader;
import org.apache.orc.RecordReader;
import org.roaringbitmap.longlong.Roaring64Bitmap;
import transactionmetastore.spark.files.DeletedBits;
import transactionmetastore.spark.files.EventColumns;

/**
 * The delete events of a directory and bucket, read by the task that needs them, when they are too many for the driver. A
 * delete event is in a file of its row's bucket, so a task reads only the files of its own bucket.
 */
final class DeleteEvents implements DeletedRows {

    private final Map<Long, Roaring64Bitmap> versions = new HashMap<>();
    private long version = -1;
    private Roaring64Bitmap rows;

    /** The receiver of an event. "by": the write id that deleted the row. */
    private interface Sink {
        void add(long by, long writeId, long bucket, long rowId);
    }

    /** Returns the delete events. "bucket": null for a file whose rows may be of any bucket. */
    static DeleteEvents of(ScanPlan.DeleteFiles deletes, int directory, Integer bucket, Configuration settings) throws IOException {
        DeleteEvents events = new DeleteEvents();
        read(deletes, directory, bucket, settings, (by, writeId, of, rowId) -> events.add(writeId, of, rowId));
        events.optimize();
        return events;
    }

    /** Returns the delete events, separately for each write id that deleted rows. */
    static ByWriter byWriter(ScanPlan.DeleteFiles deletes, int directory, Integer bucket, Configuration settings) throws IOException {
        ByWriter all = new ByWriter(new DeleteEvents(), new TreeMap<>());
        if (deletes == null) return all;
        read(deletes, directory, bucket, settings, (by, writeId, of, rowId) -> {
            all.anybody.add(writeId, of, rowId);
            all.writers.computeIfAbsent(by, key -> new DeleteEvents()).add(writeId, of, rowId);
        });
        all.anybody.optimize();
        all.writers.values().forEach(DeleteEvents::optimize);
        return all;
    }

    /** The deleted rows: of all write ids, and of each. */
    record ByWriter(DeleteEvents anybody, TreeMap<Long, DeleteEvents> writers) {
        /** Returns the first write id that deleted the row; null for most rows, which are not deleted. */
        Long first(long writeId, int bucket, long rowId) {
            if (!anybody.contains(writeId, bucket, rowId)) return null;
            for (Map.Entry<Long, DeleteEvents> writer : writers.entrySet()) {
                if (writer.getValue().contains(writeId, bucket, rowId)) return writer.getKey();
            }
            return null;
        }
    }

    private static void read(
            ScanPlan.DeleteFiles deletes, int directory, Integer bucket, Configuration settings, Sink sink) throws IOException {
        for (ScanPlan.DataFile file : deletes.files()) {
            boolean isOther = bucket != null && file.bucket() != null && !bucket.equals(file.bucket());
            if (file.directory() == directory && !isOther) read(file, deletes, settings, sink);
        }
    }

    private static void read(ScanPlan.DataFile file, ScanPlan.DeleteFiles deletes, Configuration settings, Sink sink)
            throws IOException {
        try (Reader reader = OrcFile.createReader(new Path(file.path()), OrcFile.readerOptions(settings))) {
            boolean[] included = new boolean[reader.getSchema().getMaximumId() + 1];
            Arrays.fill(included, 0, 2 + EventColumns.CURRENT, true);
            VectorizedRowBatch batch = reader.getSchema().createRowBatch();
            try (RecordReader records = reader.rows(reader.options().include(included))) {
                while (records.nextBatch(batch)) read(batch, deletes, sink);
            }
        }
    }

    private static void read(VectorizedRowBatch batch, ScanPlan.DeleteFiles deletes, Sink sink) {
        for (int row = 0; row < batch.size; ++row) {
            long by = number(batch, EventColumns.CURRENT, row);
            if (number(batch, EventColumns.OPERATION, row) != EventColumns.DELETE) continue;
            if (deletes.highWatermark() != null && by > deletes.highWatermark()) continue;
            if (Arrays.binarySearch(deletes.hidden(), by) >= 0) continue;
            sink.add(by, number(batch, EventColumns.ORIGINAL, row), number(batch, EventColumns.BUCKET, row), number(batch, EventColumns.ROW_ID, row));
        }
    }

    private void add(long writeId, long bucket, long rowId) {
        select(writeId, bucket);
        if (rows == null) {
            rows = new Roaring64Bitmap();
            versions.put(version, rows);
        }
        rows.addLong(rowId);
    }

    private void optimize() {
        versions.values().forEach(Roaring64Bitmap::runOptimize);
    }

    private static long number(VectorizedRowBatch batch, int column, int row) {
        LongColumnVector numbers = (LongColumnVector) batch.cols[column];
        return numbers.vector[numbers.isRepeating ? 0 : row];
    }

    private void select(long writeId, long bucket) {
        long wanted = DeletedBits.version(writeId, bucket);
        if (wanted == version) return;
        version = wanted;
        rows = versions.get(version);
    }

    @Override
    public boolean contains(long writeId, int bucket, long rowId) {
        select(writeId, bucket);
        return rows != null && rows.contains(rowId);
    }
}
