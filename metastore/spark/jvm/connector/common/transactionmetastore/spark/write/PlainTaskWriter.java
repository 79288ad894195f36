package transactionmetastore.spark.write;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.function.UnaryOperator;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.write.DeltaWriter;
import org.apache.spark.sql.connector.write.WriterCommitMessage;
import org.apache.spark.sql.types.StructType;
import transactionmetastore.spark.files.SerdeWriter;
import transactionmetastore.spark.internals.Rows;
import transactionmetastore.spark.table.BucketHash;
import transactionmetastore.spark.table.PartitionKeys;
import transactionmetastore.spark.table.TableShape;
/**
 * A writer of one attempt of a task, for an insert-only table: files that hold only rows, one for each partition and
 * bucket.
 *
 * Rules kept here. Rows come in the order of their files, so that a single one is open. Without buckets the file's number
 * is the task's, which no other task has. A row that the format cannot hold does not fail the task, which would only be
 * tried again: the driver is told, and publishes nothing.
 */
final class PlainTaskWriter implements DeltaWriter<InternalRow> {
    private final TaskSettings how;
    private final Configuration settings;
    private final PartitionKeys keys;
    private final BucketHash hash;
    private final int[] hashed;
    private final RowRules.Watch watch;
    private final StorableTimes times;
    private final UnaryOperator<InternalRow> columns;
    private final int task;
    private final AttemptFiles attempt;
    private final List<WrittenFile> written = new ArrayList<>();
    private PlainFiles.Opened file;
    private String key, refusal;
    private int bucket;

    PlainTaskWriter(TaskSettings how, int partition, long task) {
        this.how = how;
        this.settings = how.hadoop().settings();
        TableShape table = how.table();
        this.keys = new PartitionKeys(table.keys(), table.columns().length(), how.zone());
        this.hash = table.hash(how.zone());
        this.hashed = table.bucketPlaces();
        this.watch = how.rules().watch();
        this.times = new StorableTimes(how.plain().isOrc() ? table.columns() : new StructType());
        this.columns = Rows.first(table.columns());  // no file holds the partition keys
        this.task = partition;
        this.attempt = new AttemptFiles(how, partition, task);
    }

    @Override
    public void insert(InternalRow row) throws IOException {
        if (refusal != null) return;
        watch.look(row);
        refusal = times.refusal(row);
        if (refusal != null) return;
        String keyOfRow = keys.of(row);
        int bucketOfRow = hash == null ? task : hash.bucket(row, hashed);
        if (file == null || bucketOfRow != bucket || !Objects.equals(keyOfRow, key)) {
            finish();
            key = keyOfRow;
            bucket = bucketOfRow;
            file = how.plain().open(attempt.path("part-" + written.size()), settings);
        }
        try {
            file.write(columns.apply(row));
        } catch (IllegalArgumentException error) {
            if (!String.valueOf(error.getMessage()).startsWith(SerdeWriter.REFUSAL)) throw error;
            refusal = error.getMessage().substring(SerdeWriter.REFUSAL.length());
        }
    }

    private void finish() throws IOException {
        if (file == null) return;
        file.close();
        written.add(attempt.complete(
            new WrittenFile(file.path.toString(), key, bucket, how.statement(), false, file.rows(), 0, new long[0], 0)));
        file = null;
    }

    @Override
    public void update(InternalRow metadata, InternalRow id, InternalRow row) {
        throw new UnsupportedOperationException("Rows of insert-only tables have no ids");
    }

    @Override
    public void delete(InternalRow metadata, InternalRow id) {
        throw new UnsupportedOperationException("Rows of insert-only tables have no ids");
    }

    @Override
    public WriterCommitMessage commit() throws IOException {
        finish();
        return new TaskWriter.Written(written, watch.counts(), refusal);
    }

    @Override
    public void abort() throws IOException {
        close();
        attempt.abort();
    }

    /** Closes the open file, if any: only an attempt that failed leaves one. */
    @Override
    public void close() {
        try {
            if (file != null) file.close();
        } catch (RuntimeException error) {
            // the file is removed with its directory
        }
        file = null;
        attempt.close();
    }
}
