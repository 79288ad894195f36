package transactionmetastore.spark.files;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.LinkedHashMap;
import java.util.List;
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
 * Spark's ORC source with a writer for the events of a compaction, which have ids already.
 *
 * Events of statements get their ids in the tasks of the catalog (TaskWriter); EventFile writes both. A file of Spark's
 * becomes "part-..." with insert events, or "delete-part-..." with delete events. The task that closes a file reports its
 * content and the events that were left out; Spark takes the reports of the attempts that it keeps.
 */
public class AcidOrcWriter extends OrcFileFormat {
    private static final long serialVersionUID = 1L;
    private static final int HIDDEN_INSERT = 3, HIDDEN_DELETE = 4;
    private static final String REPORTS = "acidreports";
    /** Running writes by name: Spark creates the format anew, and passes it texts only. */
    private static final Map<String, Write> WRITES = new ConcurrentHashMap<>();

    /**
     * Lets a writer write below a path; everything but its format must be set.
     *
     * "around", if not null, makes another factory of writers out of this one. "merges": leave out a delete event, and the
     * insert event of its row behind it. "described": the columns whose written values are tallied, as JSON. "numbers": as
     * JSON, for each writer the first row id and the bucket of its events, which get new ids as they are written
     * ("currentTransaction" has the writer's number); or an empty list. Returns the report of each file (Events.finished),
     * the tallies of events and those of columns, as JSON. Spark finds a format by the name of its class.
     */
    public String save(
            SparkSession spark, DataFrameWriter<?> writer, String path, Function<?, ?> around, boolean merges, String described, String numbers) {
        CollectionAccumulator<String> reports = new CollectionAccumulator<>();
        spark.sparkContext().register(reports);
        String name = UUID.randomUUID().toString();
        Thread thread = Thread.currentThread();
        ClassLoader usual = thread.getContextClassLoader();
        thread.setContextClassLoader(new KnowingUs(usual));
        WRITES.put(name, new Write(reports, around, merges, described, numbers));
        try {
            writer.format(getClass().getName()).option(REPORTS, name).save(path);
        } finally {
            WRITES.remove(name);
            thread.setContextClassLoader(usual);
        }
        return Messages.listed(reports.value());
    }

    /** A write: its options besides the rows. */
    private static class Write {
        final CollectionAccumulator<String> reports;
        final Function<?, ?> around;
        final boolean merges;
        final String described, numbers;

        Write(CollectionAccumulator<String> reports, Function<?, ?> around, boolean merges, String described, String numbers) {
            this.reports = reports;
            this.around = around;
            this.merges = merges;
            this.described = described;
            this.numbers = numbers;
        }
    }

    /** A class loader that knows this class and all classes of its parent. */
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
            super.prepareWrite(spark, job, options, events), write.reports, write.merges, write.described, write.numbers);
        return write.around == null ? made : around(write.around, made);
    }

    @SuppressWarnings("unchecked")  // Scala's functions take Object here
    private static OutputWriterFactory around(Function<?, ?> around, OutputWriterFactory made) {
        return (OutputWriterFactory) ((Function<Object, Object>) around).apply(made);
    }

    /** The factory that Spark sends from the driver to the tasks. */
    public static class Factory extends OutputWriterFactory {
        private static final long serialVersionUID = 1L;
        private final OutputWriterFactory plain;
        private final CollectionAccumulator<String> reports;
        private final boolean merges;
        private final String described, numbers;

        public Factory(
                OutputWriterFactory plain, CollectionAccumulator<String> reports, boolean merges, String described, String numbers) {
            this.plain = plain;
            this.reports = reports;
            this.merges = merges;
            this.described = described;
            this.numbers = numbers;
        }

        @Override
        public String getFileExtension(TaskAttemptContext context) {
            return plain.getFileExtension(context);
        }

        @Override
        public OutputWriter newInstance(String path, StructType events, TaskAttemptContext context) {
            return new Events(
                path, events, context.getConfiguration(), reports, new Tally(merges),
                new ColumnTallies((StructType) events.fields()[EventColumns.ROW].dataType(), Messages.list(described)), Messages.list(numbers));
        }
    }

    /** The events of one writer, sorted by ROW__ID. */
    public static class Events extends OutputWriter {
        private final String path;
        private final StructType events;
        private final Configuration settings;
        private final CollectionAccumulator<String> reports;
        private final int columns;
        private final Tally tally;
        private final ColumnTallies described;
        private final List<?> numbers;
        private List<?> number;
        private EventFile inserts, deletes;
        private long written;

        public Events(String path, StructType events, Configuration settings, CollectionAccumulator<String> reports, Tally tally,
                      ColumnTallies described, List<?> numbers) {
            this.path = path;
            this.events = events;
            this.settings = settings;
            this.reports = reports;
            this.tally = tally;
            this.described = described;
            this.numbers = numbers;
            this.columns = ((StructType) events.fields()[EventColumns.ROW].dataType()).length();
        }

        @Override
        public String path() {
            return path;
        }

        @Override
        public void write(InternalRow event) {
            for (int column = 0; column < EventColumns.ROW; ++column) {
                if (event.isNullAt(column)) throw new IllegalStateException("Of an event only the row may be NULL");
            }
            int operation = event.getInt(EventColumns.OPERATION), bucket = event.getInt(EventColumns.BUCKET);
            long original = event.getLong(EventColumns.ORIGINAL), rowId = event.getLong(EventColumns.ROW_ID), current = event.getLong(EventColumns.CURRENT);
            if (tally.leavesOut(operation, original, bucket, rowId)) return;
            try {
                if (operation == EventColumns.DELETE) {
                    if (deletes == null) deletes = open("delete-", true);
                    deletes.write(original, bucket, rowId, current, null);
                    return;
                }
                if (inserts == null) inserts = open("", false);
                InternalRow row = event.isNullAt(EventColumns.ROW) ? null : event.getStruct(EventColumns.ROW, columns);
                if (row != null) described.add(row);
                if (numbers.isEmpty()) {
                    inserts.write(original, bucket, rowId, current, row);
                } else {
                    tally.requireNext(original, bucket, rowId);
                    if (number == null) number = (List<?>) numbers.get((int) current);
                    inserts.write(original, number(1).intValue(), number(0).longValue() + written++, original, row);
                }
            } catch (IOException error) {
                throw new UncheckedIOException(error);
            }
        }

        private Number number(int place) {
            return (Number) number.get(place);
        }

        private EventFile open(String prefix, boolean isOfDeletes) throws IOException {
            Path given = new Path(path);
            return new EventFile(new Path(given.getParent(), prefix + given.getName()), events, settings, isOfDeletes);
        }

        @Override
        public void close() {
            try {
                if (deletes != null) reports.add(finished(deletes));
                if (inserts != null) reports.add(finished(inserts));
                reports.add(tally.text());
                for (String text : described.texts()) reports.add(text);
            } catch (IOException error) {
                throw new UncheckedIOException(error);
            }
        }

        /** Returns the report of a complete file: FileReport in metastore/spark/write/event_format.py. */
        private static String finished(EventFile file) throws IOException {
            file.close();
            Map<String, Object> report = new LinkedHashMap<>();
            report.put("rows", file.rows());
            report.put("lowest_writer", file.lowestWriter());
            report.put("highest_writer", file.highestWriter());
            report.put("repeated", file.mostRepeated());
            report.put("times", file.timesRepeated());
            report.put("unsorted", file.unsorted());
            report.put("last", file.last());
            report.put("first_row_id", file.firstRowId());
            report.put("jumps", file.jumps());
            report.put("file", place(file.path()));
            return Messages.text(report);
        }

        /** Returns the file's path below the directory of Spark's files, whatever directory the attempt writes to. */
        private static String place(Path path) {
            String place = path.getName();
            for (Path above = path.getParent(); above.getName().indexOf('=') > 0; above = above.getParent()) {
                place = above.getName() + "/" + place;
            }
            return place;
        }
    }

    /**
     * A tally of all events that came to one writer, also of those that are left out: Tally in
     * metastore/compaction/working/rules.py.
     */
    public static class Tally {
        private final boolean merges;
        private int lowest = Integer.MAX_VALUE, highest = Integer.MIN_VALUE, namedBucket, lastBucket;
        private long inserts, deletes, hiddenInserts, hiddenDeletes, deleted, found, highestNamed = -1;
        private long namedOriginal = -1, namedRowId = -1, lastOriginal = -1, lastRowId = -1;
        private boolean isFound;

        public Tally(boolean merges) {
            this.merges = merges;
        }

        /**
         * Counts an event. Returns true if it is not to be written. The delete events of a row come before its insert
         * event.
         */
        public boolean leavesOut(int operation, long original, int bucket, long rowId) {
            lowest = Math.min(lowest, EventFile.writerId(bucket));
            highest = Math.max(highest, EventFile.writerId(bucket));
            boolean isNamed = original == namedOriginal && rowId == namedRowId && bucket == namedBucket;
            switch (operation) {
            case EventColumns.INSERT:
                ++inserts;
                if (!merges || !isNamed) return false;
                ++deleted;
                if (!isFound) ++found;
                isFound = true;
                return true;
            case EventColumns.DELETE:
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

        /** Refuses an event out of order. Rows that get new ids need this check, since no report contains their old ids. */
        void requireNext(long original, int bucket, long rowId) {
            boolean isNext = original != lastOriginal ? original > lastOriginal
                : bucket != lastBucket ? bucket > lastBucket : rowId > lastRowId;
            if (merges && !isNext) {
                throw new IllegalStateException("The row " + original + "," + bucket + "," + rowId + " does not belong behind the row before it");
            }
            lastOriginal = original;
            lastBucket = bucket;
            lastRowId = rowId;
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
