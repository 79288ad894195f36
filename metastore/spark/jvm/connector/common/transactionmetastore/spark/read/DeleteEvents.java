package transactionmetastore.spark.read;

import java.io.IOException;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hive.ql.exec.vector.LongColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.VectorizedRowBatch;
import org.apache.orc.OrcFile;
import org.apache.orc.Reader;
import org.apache.orc.RecordReader;
import org.roaringbitmap.longlong.Roaring64Bitmap;
import transactionmetastore.spark.DeletedBits;

/**
 * The delete events of a directory and bucket, read by the task that needs them: where they are too many for the driver.
 *
 * A delete event is in a file of its row's bucket. So a task reads only the files of its own bucket.
 */
final class DeleteEvents implements DeletedRows {
    private static final int DELETE = 2, OPERATION = 0, WRITE_ID = 1, BUCKET = 2, ROW_ID = 3, BY = 4;

    private final Map<Long, Roaring64Bitmap> versions = new HashMap<>();
    private long version = -1;
    private Roaring64Bitmap rows;

    /** "bucket": null for a file whose rows may be of any bucket. */
    static DeleteEvents of(ScanPlan.DeleteFiles deletes, int directory, Integer bucket, Configuration settings) throws IOException {
        DeleteEvents events = new DeleteEvents();
        for (ScanPlan.DataFile file : deletes.files()) {
            boolean isOther = bucket != null && file.bucket() != null && !bucket.equals(file.bucket());
            if (file.directory() == directory && !isOther) events.add(file, deletes, settings);
        }
        events.versions.values().forEach(Roaring64Bitmap::runOptimize);
        return events;
    }

    private void add(ScanPlan.DataFile file, ScanPlan.DeleteFiles deletes, Configuration settings) throws IOException {
        try (Reader reader = OrcFile.createReader(new Path(file.path()), OrcFile.readerOptions(settings))) {
            boolean[] included = new boolean[reader.getSchema().getMaximumId() + 1];
            Arrays.fill(included, 0, 2 + BY, true);
            VectorizedRowBatch batch = reader.getSchema().createRowBatch();
            try (RecordReader records = reader.rows(reader.options().include(included))) {
                while (records.nextBatch(batch)) add(batch, deletes);
            }
        }
    }

    private void add(VectorizedRowBatch batch, ScanPlan.DeleteFiles deletes) {
        for (int row = 0; row < batch.size; ++row) {
            long by = number(batch, BY, row);
            if (number(batch, OPERATION, row) != DELETE) continue;
            if (deletes.highWatermark() != null && by > deletes.highWatermark()) continue;
            if (Arrays.binarySearch(deletes.hidden(), by) >= 0) continue;
            select(number(batch, WRITE_ID, row), number(batch, BUCKET, row));
            if (rows == null) {
                rows = new Roaring64Bitmap();
                versions.put(version, rows);
            }
            rows.addLong(number(batch, ROW_ID, row));
        }
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
