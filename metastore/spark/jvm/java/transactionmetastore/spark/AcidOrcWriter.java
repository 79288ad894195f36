package transactionmetastore.spark;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Function;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.mapreduce.Job;
import org.apache.hadoop.mapreduce.TaskAttemptContext;
import org.apache.spark.sql.DataFrameWriter;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.execution.datasources.OutputWriter;
import org.apache.spark.sql.execution.datasources.OutputWriterFactory;
import org.apache.spark.sql.execution.datasources.orc.OrcFileFormat;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.util.CollectionAccumulator;

/**
 * Spark's ORC source, with a writer for changes.
 *
 * A change is one of Hive's events, or both at once: an update is the old version's delete event and the new one's
 * insert event. Each file of Spark's becomes up to two, "part-..." with insert events and "delete-part-..." with delete
 * events; the task that closes one reports what is in it, and Spark takes the reports of the attempts that it keeps.
 */
public class AcidOrcWriter extends OrcFileFormat {
    private static final long serialVersionUID = 1L;
    private static final int INSERT = 0, UPDATE = 1, DELETE = 2, HIDDEN_INSERT = 3, HIDDEN_DELETE = 4;
    private static final int OPERATION = 0, ORIGINAL = 1, BUCKET = 2, ROW_ID = 3, CURRENT = 4, ROW = 5;
    private static final String REPORTS = "acidreports";
    /** Writes that go on, by their names: Spark makes the format anew, and tells it no more than texts. */
    private static final Map<String, Write> WRITES = new ConcurrentHashMap<>();

    /**
     * Let a writer that has got everything but its format write below a path. "statement" marks the new row versions;
     * "around", if there is one, makes another factory of writers of the one here. "tallies": whether each event that comes
     * is counted; "merges": whether an insert event behind a delete event of its row is left out, and the delete event too;
     * "described": the columns whose written values are tallied too, as JSON.
     *
     * Returns the report of each file (Changes.finished), the tallies and those of columns, as JSON. Spark finds a format by its class's name.
     */
    public String save(SparkSession spark, DataFrameWriter<?> writer, String path, int statement, Function<?, ?> around,
                       boolean tallies, boolean merges, String described) {
        CollectionAccumulator<String> reports = new CollectionAccumulator<>();
        spark.sparkContext().register(reports);
        String name = UUID.randomUUID().toString();
        Thread thread = Thread.currentThread();
        ClassLoader usual = thread.getContextClassLoader();
        thread.setContextClassLoader(new KnowingUs(usual));
        WRITES.put(name, new Write(reports, statement, around, tallies, merges, described));
        try {
            writer.format(getClass().getName()).option(REPORTS, name).save(path);
        } finally {
            WRITES.remove(name);
            thread.setContextClassLoader(usual);
        }
        return Messages.listed(reports.value());
    }

    /** What a write is besides its rows. */
    private static class Write {
        final CollectionAccumulator<String> reports;
        final int statement;
        final Function<?, ?> around;
        final boolean tallies, merges;
        final String described;

        Write(CollectionAccumulator<String> reports, int statement, Function<?, ?> around, boolean tallies,
              boolean merges, String described) {
            this.reports = reports;
            this.statement = statement;
            this.around = around;
            this.tallies = tallies;
            this.merges = merges;
            this.described = described;
        }
    }

    /** What knows all classes that its parent knows, and this one. */
    public static class KnowingUs extends ClassLoader {
        public KnowingUs(ClassLoader parent) {
            super(parent);
        }

        @Override
        protected Class<?> findClass(String name) throws ClassNotFoundException {
            if (name.equals(AcidOrcWriter.class.getName())) return AcidOrcWriter.class;
            throw new ClassNotFoundException(name);
        }
    }

    @Override
    public OutputWriterFactory prepareWrite(
            SparkSession spark, Job job, scala.collection.immutable.Map<String, String> options, StructType events) {
        Object found = WRITES.get((Object) options.apply(REPORTS));
        Write write = (Write) found;
        OutputWriterFactory made = new Factory(
            super.prepareWrite(spark, job, options, events), write.reports, write.statement, write.tallies, write.merges,
            write.described);
        return write.around == null ? made : around(write.around, made);
    }

    @SuppressWarnings("unchecked")  // the compiler at the user's makes no bridges, so such functions are of Object
    private static OutputWriterFactory around(Function<?, ?> around, OutputWriterFactory made) {
        return (OutputWriterFactory) ((Function<Object, Object>) around).apply(made);
    }

    /** What goes from the driver to the tasks. */
    public static class Factory extends OutputWriterFactory {
        private static final long serialVersionUID = 1L;
        private final OutputWriterFactory plain;
        private final CollectionAccumulator<String> reports;
        private final int statement;
        private final boolean tallies, merges;
        private final String described;

        public Factory(OutputWriterFactory plain, CollectionAccumulator<String> reports, int statement, boolean tallies,
                       boolean merges, String described) {
            this.plain = plain;
            this.reports = reports;
            this.statement = statement;
            this.tallies = tallies;
            this.merges = merges;
            this.described = described;
        }

        @Override
        public String getFileExtension(TaskAttemptContext context) {
            return plain.getFileExtension(context);
        }

        @Override
        public OutputWriter newInstance(String path, StructType events, TaskAttemptContext context) {
            return new Changes(
                path, events, context.getConfiguration(), reports, statement, tallies ? new Tally(merges) : null,
                new ColumnTallies((StructType) events.fields()[ROW].dataType(), Messages.list(described)));
        }
    }

    /** The changes of one (partition, writer), sorted by ROW__ID. */
    public static class Changes extends OutputWriter {
        private final String path;
        private final StructType events;
        private final Configuration settings;
        private final CollectionAccumulator<String> reports;
        private final int statement, columns;
        private final Tally tally;
        private final ColumnTallies described;
        private EventFile inserts, deletes;
        private long nextRowId, updates;

        public Changes(String path, StructType events, Configuration settings, CollectionAccumulator<String> reports,
                       int statement, Tally tally, ColumnTallies described) {
            this.path = path;
            this.events = events;
            this.settings = settings;
            this.reports = reports;
            this.statement = statement;
            this.tally = tally;
            this.described = described;
            this.columns = ((StructType) events.fields()[ROW].dataType()).length();
        }

        @Override
        public String path() {
            return path;
        }

        @Override
        public void write(InternalRow change) {
            for (int column = 0; column < ROW; ++column) {
                if (column != ROW_ID && change.isNullAt(column)) {
                    throw new IllegalStateException("Of an event only the row, and the id of a new one, may be NULL");
                }
            }
            int operation = change.getInt(OPERATION), bucket = change.getInt(BUCKET);
            long original = change.getLong(ORIGINAL), current = change.getLong(CURRENT);
            boolean isNew = change.isNullAt(ROW_ID);
            if (isNew && (operation != INSERT || tally != null)) {
                throw new IllegalStateException("Only an inserted row may be without an id");
            }
            if (tally != null && tally.leavesOut(operation, original, bucket, change.getLong(ROW_ID))) return;
            try {
                if (operation != INSERT) {
                    if (deletes == null) deletes = open("delete-", true);
                    deletes.write(original, bucket, change.getLong(ROW_ID), current, null);
                }
                if (operation == DELETE) return;
                if (inserts == null) inserts = open("", false);
                InternalRow row = change.isNullAt(ROW) ? null : change.getStruct(ROW, columns);
                if (row != null) described.add(row);
                if (operation == UPDATE) {
                    ++updates;
                    inserts.write(current, EventFile.newVersion(bucket, statement), nextRowId++, current, row);
                } else {
                    inserts.write(original, bucket, isNew ? nextRowId++ : change.getLong(ROW_ID), current, row);
                }
            } catch (IOException error) {
                throw new UncheckedIOException(error);
            }
        }

        private EventFile open(String prefix, boolean isOfDeletes) throws IOException {
            Path given = new Path(path);
            return new EventFile(new Path(given.getParent(), prefix + given.getName()), events, settings, isOfDeletes);
        }

        @Override
        public void close() {
            try {
                if (deletes != null) reports.add(finished(deletes, 0));
                if (inserts != null) reports.add(finished(inserts, updates));
                if (tally != null) reports.add(tally.text());
                for (String text : described.texts()) reports.add(text);
            } catch (IOException error) {
                throw new UncheckedIOException(error);
            }
        }

        /** A file's report, once it is complete: FileReport in metastore/spark/write/event_format.py. */
        private static String finished(EventFile file, long updates) throws IOException {
            file.close();
            Map<String, Object> report = new LinkedHashMap<>();
            report.put("rows", file.rows());
            report.put("lowest_writer", file.lowestWriter());
            report.put("highest_writer", file.highestWriter());
            report.put("updates", updates);
            report.put("repeated", file.mostRepeated());
            report.put("times", file.timesRepeated());
            report.put("unsorted", file.unsorted());
            report.put("last", file.last());
            report.put("first_row_id", file.firstRowId());
            report.put("jumps", file.jumps());
            report.put("file", place(file.path()));
            return Messages.text(report);
        }

        /** The file's path from where Spark puts its files, whatever directory the attempt writes to. */
        private static String place(Path path) {
            String place = path.getName();
            for (Path above = path.getParent(); above.getName().indexOf('=') > 0; above = above.getParent()) {
                place = above.getName() + "/" + place;
            }
            return place;
        }
    }

    /** What became of all events that came to one writer, also of those that are in no file: Tally in metastore/compaction/working/rules.py. */
    static class Tally {
        private final boolean merges;
        private int lowest = Integer.MAX_VALUE, highest = Integer.MIN_VALUE, namedBucket;
        private long inserts, deletes, hiddenInserts, hiddenDeletes, deleted, found, highestNamed = -1;
        private long namedOriginal = -1, namedRowId = -1;
        private boolean isFound;

        Tally(boolean merges) {
            this.merges = merges;
        }

        /** Count an event; whether it is not to be written. Of one row the delete events come first. */
        boolean leavesOut(int operation, long original, int bucket, long rowId) {
            lowest = Math.min(lowest, EventFile.writerId(bucket));
            highest = Math.max(highest, EventFile.writerId(bucket));
            boolean isNamed = original == namedOriginal && rowId == namedRowId && bucket == namedBucket;
            switch (operation) {
            case INSERT:
                ++inserts;
                if (!merges || !isNamed) return false;
                ++deleted;
                if (!isFound) ++found;
                isFound = true;
                return true;
            case DELETE:
                ++deletes;
                if (merges && !isNamed) {
                    namedOriginal = original;
                    namedBucket = bucket;
                    namedRowId = rowId;
                    isFound = false;
                    highestNamed = Math.max(highestNamed, original);
                }
                return merges;
            case HIDDEN_INSERT:
                ++hiddenInserts;
                return true;
            case HIDDEN_DELETE:
                ++hiddenDeletes;
                return true;
            default:
                throw new IllegalStateException("No event of a compaction has the operation " + operation);
            }
        }

        String text() {
            Map<String, Object> text = new LinkedHashMap<>();
            text.put("lowest_writer", lowest);
            text.put("highest_writer", highest);
            text.put("inserts", inserts);
            text.put("deletes", deletes);
            text.put("hidden_inserts", hiddenInserts);
            text.put("hidden_deletes", hiddenDeletes);
            text.put("deleted", deleted);
            text.put("found", found);
            text.put("highest_named", highestNamed);
            return Messages.text(text);
        }
    }
}
