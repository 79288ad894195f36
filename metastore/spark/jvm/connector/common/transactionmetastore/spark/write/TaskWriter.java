package transactionmetastore.spark.write;

import java.io.IOException;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.write.DeltaWriter;
import org.apache.spark.sql.connector.write.WriterCommitMessage;
import org.apache.spark.sql.types.StructType;
import transactionmetastore.spark.files.EventFile;
import transactionmetastore.spark.planner.AcidException;
import transactionmetastore.spark.table.BucketHash;
import transactionmetastore.spark.table.PartitionKeys;
import transactionmetastore.spark.table.RowId;
import transactionmetastore.spark.table.TableShape;

/**
 * A writer of one attempt of a task: events of new rows and of deleted rows, each in the files where Hive expects them.
 *
 * Rules kept here (ACID-12 to ACID-14). A new row of a table with buckets goes to the bucket of its hash, and the new
 * version of a row to the bucket of the old one. Without buckets the task is the writer: no other task writes files of its
 * number; where the numbers of writers end, the statement's number moves on. A delete event copies the id of the row and
 * goes to the writer named in it. Rows are numbered in their file.
 */
final class TaskWriter implements DeltaWriter<InternalRow> {
    private static final int WRITE_ID = 0, BUCKET = 1, ROW_ID = 2;

    /** A file for events. "key": of its partition (null without); "bucket": its bucket. */
    private record Place(String key, int bucket) {}

    /** An open file. "updates": how many of its rows are new versions. */
    private static final class Open {
        final EventFile file;
        long updates;
        /** True if the last event deletes a row without a new version. */
        boolean endsWithDelete;

        Open(EventFile file) {
            this.file = file;
        }
    }

    private final TaskSettings how;
    private final Configuration settings;
    private final StructType events;
    private final PartitionKeys keys;
    private final BucketHash hash;
    private final int[] hashed;
    private final RowRules.Watch watch;
    private final StorableTimes times;
    private final int writer, statement;
    private final AttemptFiles attempt;
    private final Map<Place, Open> inserts = new LinkedHashMap<>(), deletes = new LinkedHashMap<>();
    private final List<WrittenFile> written = new ArrayList<>();
    private Place lastInsert, lastDelete;
    private String refusal;
    private int files;

    TaskWriter(TaskSettings how, int partition, long task) {
        this.how = how;
        this.settings = how.hadoop().settings();
        TableShape table = how.table();
        this.events = table.events();
        this.keys = new PartitionKeys(table.keys(), table.columns().length(), how.zone());
        this.hash = table.hash(how.zone());
        this.hashed = table.bucketPlaces();
        this.watch = how.rules().watch();
        this.times = new StorableTimes(table.columns());
        this.writer = partition & EventFile.MAX_WRITER_ID;
        this.statement = how.statement() + partition / (EventFile.MAX_WRITER_ID + 1);
        this.attempt = new AttemptFiles(how, partition, task);
    }

    @Override
    public void insert(InternalRow row) throws IOException {
        add(row, hash == null ? writer : hash.bucket(row, hashed));
    }

    @Override
    public void reinsert(InternalRow metadata, InternalRow row) throws IOException {
        insert(row);
    }

    /** Writes both events of an update at once, so that they are of the same row. */
    @Override
    public void update(InternalRow metadata, InternalRow id, InternalRow row) throws IOException {
        Open out = deletes(metadata, id);
        addDelete(out, id);
        out.endsWithDelete = false;
        int old = EventFile.writerId(id.getInt(BUCKET));
        if (how.mayMove()) requireInPlace(metadata, row, old);
        ++add(row, hash == null ? writer : old).updates;
    }

    private void requireInPlace(InternalRow metadata, InternalRow row, int old) {
        TableShape table = how.table();
        if (hash != null && hash.bucket(row, hashed) != old) {
            throw RowChanges.bucketingColumns(table, table.buckets().columns());
        }
        if (table.keys().length() == 0) return;
        int moved = keys.difference(metadata.getUTF8String(0).toString(), row);
        if (moved >= 0) throw RowChanges.partitionColumn(table, table.keys().fieldNames()[moved]);
    }

    /**
     * Deletes a row once, even if several rows of a MERGE's source delete it: for any other action Spark lets only one
     * source row match.
     */
    @Override
    public void delete(InternalRow metadata, InternalRow id) throws IOException {
        Open out = deletes(metadata, id);
        if (out.endsWithDelete && out.file.endsWith(id.getLong(WRITE_ID), id.getInt(BUCKET), id.getLong(ROW_ID))) return;
        addDelete(out, id);
        out.endsWithDelete = true;
    }

    private void addDelete(Open out, InternalRow id) throws IOException {
        out.file.write(id.getLong(WRITE_ID), id.getInt(BUCKET), id.getLong(ROW_ID), how.writeId(), null);
    }

    /** Returns the file for the delete event of a row. */
    private Open deletes(InternalRow metadata, InternalRow id) throws IOException {
        if (id.getInt(BUCKET) == RowId.NO_BUCKET) {
            throw new AcidException("InvalidOperationError", "A row of " + how.table().name() + " has no id, so it cannot be "
                + "changed: its file has no bucket number in its name. Rename the file like 000000_0.");
        }
        String key = how.table().keys().length() == 0 ? null : metadata.getUTF8String(0).toString();
        Place place = new Place(key, EventFile.writerId(id.getInt(BUCKET)));
        if (!place.equals(lastDelete)) {
            if (lastDelete != null) finish(lastDelete, deletes.remove(lastDelete), true);
            lastDelete = place;
        }
        Open out = deletes.get(place);
        if (out == null) {
            out = open(true);
            deletes.put(place, out);
        }
        return out;
    }

    private Open add(InternalRow row, int bucket) throws IOException {
        watch.look(row);
        if (refusal == null) refusal = times.refusal(row);
        Place place = new Place(keys.of(row), bucket);
        if (how.isOrdered() && !place.equals(lastInsert)) {
            if (lastInsert != null) finish(lastInsert, inserts.remove(lastInsert), false);
            lastInsert = place;
        }
        Open out = inserts.get(place);
        if (out == null) {
            out = open(false);
            inserts.put(place, out);
        }
        long id = out.file.rows();
        out.file.write(how.writeId(), EventFile.bucketNumber(bucket, statement()), id, how.writeId(), row);
        return out;
    }

    /** Returns the statement id. In a table with buckets a number is one bucket's, whichever task writes it. */
    private int statement() {
        return hash == null ? statement : how.statement();
    }

    private Open open(boolean isOfDeletes) throws IOException {
        String name = (isOfDeletes ? "delete-" : "") + "part-" + files++ + ".orc";
        return new Open(new EventFile(attempt.path(name), events, settings, isOfDeletes));
    }

    private void finish(Place place, Open out, boolean isDelete) throws IOException {
        out.file.close();
        String path = out.file.path().toString();
        written.add(attempt.complete(new WrittenFile(path, place.key, place.bucket, isDelete ? how.statement() : statement(), isDelete,
            out.file.rows(), out.updates, out.file.mostRepeated(), out.file.timesRepeated())));
    }

    @Override
    public WriterCommitMessage commit() throws IOException {
        for (var open : deletes.entrySet()) finish(open.getKey(), open.getValue(), true);
        deletes.clear();
        for (var open : inserts.entrySet()) finish(open.getKey(), open.getValue(), false);
        inserts.clear();
        return new Written(written, watch.counts(), refusal);
    }

    @Override
    public void abort() throws IOException {
        close();
        attempt.abort();
    }

    /** Closes files that are still open: only an attempt that failed leaves any. */
    @Override
    public void close() {
        for (var open : List.of(deletes, inserts)) {
            for (Open file : open.values()) abandon(file);
            open.clear();
        }
        attempt.close();
    }

    private static void abandon(Open open) {
        try {
            open.file.close();
        } catch (IOException | RuntimeException error) {
            // the file is removed with its directory
        }
    }

    /**
     * A finished task's message to the driver. "broken": for each rule the number of rows that broke it; "refusal": the
     * reason why a row cannot be stored, or null.
     */
    record Written(List<WrittenFile> files, long[] broken, String refusal) implements WriterCommitMessage {
        private static final long serialVersionUID = 1L;
    }
}
