package transactionmetastore.spark.read;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.sql.vectorized.ColumnVector;
import transactionmetastore.spark.internals.FilledColumn;
import transactionmetastore.spark.table.ChangeColumn;

/**
 * The rows of a batch that changes inserted or deleted, with the write ids of the changes. An insert and a delete are two
 * changes, so a row may be there twice, or not at all.
 */
final class ChangedRows {
    private static final byte[] INSERT = "insert".getBytes(StandardCharsets.UTF_8), DELETE = "delete".getBytes(StandardCharsets.UTF_8);

    /** Positions of the rows in the batch that was read. */
    final int[] places;
    private final ChangeFeed feed;
    private final DeleteEvents.ByWriter deletes;
    private final Long replacedBy;
    private final FilledColumn[] columns;
    private int count;

    /** Creates the rows of a file, and reads the delete events of these rows. "capacity": the most rows of a batch. */
    ChangedRows(ChangeFeed feed, ScanPlan.DeleteFiles deletes, ScanPlan.DataFile file, int capacity, Configuration settings)
            throws IOException {
        this.feed = feed;
        this.deletes = DeleteEvents.byWriter(deletes, file.directory(), file.bucket(), settings);
        this.replacedBy = feed.replacedBy()[file.directory()];
        this.places = new int[2 * capacity];
        this.columns = new FilledColumn[ChangeColumn.values().length];
        for (ChangeColumn each : ChangeColumn.values()) {
            columns[each.ordinal()] = new FilledColumn(2 * capacity, each.type());
        }
    }

    void begin() {
        count = 0;
        for (FilledColumn column : columns) column.reset();
    }

    /** Adds the changes of the row at "place" of the batch. "by": the write id that inserted it. */
    void add(int place, long by, long writeId, int bucket, long rowId) {
        if (feed.has(by)) add(place, INSERT, by);
        Long deletedBy = deletes.first(writeId, bucket, rowId);
        if (deletedBy == null) deletedBy = replacedBy;
        if (deletedBy != null && feed.has(deletedBy)) add(place, DELETE, deletedBy);
    }

    private void add(int place, byte[] type, long by) {
        places[count] = place;
        columns[ChangeColumn.TYPE.ordinal()].put(count, type);
        columns[ChangeColumn.VERSION.ordinal()].put(count, by);
        Long time = feed.time(by);
        FilledColumn times = columns[ChangeColumn.TIME.ordinal()];
        if (time == null) times.putNull(count);
        else times.put(count, time);
        ++count;
    }

    int count() {
        return count;
    }

    ColumnVector column(ChangeColumn which) {
        return columns[which.ordinal()].values();
    }
}
