package transactionmetastore.spark.read;

import java.io.IOException;
import java.io.Serializable;
import java.util.List;
import org.apache.hadoop.mapred.JobConf;
import org.apache.orc.OrcConf;
import org.apache.orc.Reader;
import org.apache.orc.mapred.OrcInputFormat;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.util.SerializableConfiguration;

/**
 * The data that all tasks of a scan share; Spark sends it to an executor once.
 *
 * Each executor makes ORC's settings once. Hadoop copies any settings but a job's for each file, which costs as much as
 * opening the file, and ORC decodes the condition each time.
 */
final class ReadContext implements Serializable {
    private static final long serialVersionUID = 1L;

    final SerializableConfiguration settings;
    final Layout layout;
    final List<ScanPlan.Directory> directories;
    final List<InternalRow> keys;
    final ScanPlan.Visible visible;
    final long[][] deletedBits;
    final int shift, capacity;
    final ScanPlan.DeleteFiles deleteFiles;
    /** The changes to read; null for a scan that reads none. */
    final ChangeFeed changes;
    /** True if the rows are written again. */
    final boolean isMoving;
    /** The check of buckets; null if rows need not be of their files' buckets. */
    final BucketCheck buckets;
    private transient Prepared events, plain;

    ReadContext(
            SerializableConfiguration settings, Layout layout, ScanPlan plan, List<InternalRow> keys, int capacity,
            boolean isMoving, BucketCheck buckets) {
        this.isMoving = isMoving;
        this.buckets = buckets;
        this.settings = settings;
        this.layout = layout;
        this.directories = plan.directories();
        this.keys = keys;
        this.visible = plan.visible();
        this.deletedBits = plan.deletedBits();
        this.shift = plan.shift();
        this.deleteFiles = plan.deleteFiles();
        this.changes = plan.changes();
        this.capacity = capacity;
    }

    boolean hasDeletes() {
        return deletedBits != null || deleteFiles != null;
    }

    /** The settings for a kind of files, and ORC's options for reading such a file. */
    static final class Prepared {
        final JobConf job;
        private Reader.Options options;

        Prepared(JobConf job) {
            this.job = job;
        }

        synchronized Reader.Options options(Reader file, long start, long length) {
            if (options == null) options = OrcInputFormat.buildOptions(job, file, 0, 0);
            return options.clone().range(start, length);
        }
    }

    synchronized Prepared prepared(boolean isPlain) {
        if (events == null) {
            events = prepared(Layout.orc(layout.events), layout.includedOfEvents(hasDeletes(), visible, changes != null));
            plain = prepared(Layout.orc(layout.plain), layout.includedOfPlain());
        }
        return isPlain ? plain : events;
    }

    private Prepared prepared(String schema, String included) {
        JobConf job = new JobConf(settings.value());
        OrcConf.MAPRED_INPUT_SCHEMA.setString(job, schema);
        OrcConf.INCLUDE_COLUMNS.setString(job, included);
        return new Prepared(job);
    }

    /** Returns the changes of a file's rows; null if no changes are read. Each caller gets its own object. */
    ChangedRows changedRows(ScanPlan.DataFile file) throws IOException {
        return changes == null ? null : new ChangedRows(changes, deleteFiles, file, capacity, prepared(false).job);
    }

    /** Returns the deleted rows of a file's directory and bucket; null if there are none. Each caller gets its own object. */
    DeletedRows deletedRows(ScanPlan.DataFile file) throws IOException {
        if (deletedBits != null) return new DeletedRows.Bits(deletedBits, shift, file.directory());
        if (deleteFiles == null || changes != null) return null;
        return DeleteEvents.of(deleteFiles, file.directory(), file.bucket(), prepared(false).job);
    }
}
