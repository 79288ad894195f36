package transactionmetastore.spark.read;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.util.Arrays;
import java.util.Iterator;
import org.apache.hadoop.fs.Path;
import org.apache.orc.OrcFile;
import org.apache.orc.Reader;
import org.apache.orc.RecordReader;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import transactionmetastore.spark.files.AcidOrcReader;
import transactionmetastore.spark.files.EventColumns;
import transactionmetastore.spark.files.OrcBatches;
import transactionmetastore.spark.files.SmallOrcFile;
import transactionmetastore.spark.internals.ConstantColumn;
import transactionmetastore.spark.internals.FilledColumn;
import transactionmetastore.spark.plain.GoneFile;
import transactionmetastore.spark.table.ChangeColumn;
import transactionmetastore.spark.table.RowId;

/**
 * A reader of one task's files, one after another, in batches without the rows that do not count.
 *
 * OrcBatches shows an open file in Spark's columns. A batch in which every row counts is returned unchanged; any other is
 * shown through a list of its counting rows.
 */
final class AcidFileReader implements PartitionReader<ColumnarBatch> {
    /** The largest size of a file that is read into memory by one request. */
    private static final int SMALL = 1 << 20;

    private final ReadContext context;
    private final Iterator<AcidPartition.Split> splits;
    private AcidPartition.Split split;
    private Opened file;
    private ColumnarBatch batch;

    AcidFileReader(ReadContext context, AcidPartition partition) {
        this.context = context;
        this.splits = partition.splits().iterator();
    }

    @Override
    public boolean next() throws IOException {
        while (true) {
            if (file == null) {
                if (!splits.hasNext()) return false;
                split = splits.next();
            }
            try {
                if (file == null) file = new Opened(context, split);
                batch = file.next();
            } catch (FileNotFoundException error) {
                throw GoneFile.of(split.file().path(), error);
            }
            if (batch != null) return true;
            file.close();
            file = null;
        }
    }

    @Override
    public ColumnarBatch get() {
        return batch;
    }

    @Override
    public void close() throws IOException {
        if (file != null) file.close();
    }

    /** An open part of a file. */
    private static final class Opened {
        private final ReadContext context;
        private final ScanPlan.DataFile file;
        private final OrcBatches reader;
        private final RecordReader records;
        private final DeletedRows deleted;
        private final ChangedRows changes;
        private final int[] chosen;
        private AcidOrcReader.Run run;
        private FilledColumn plainRowIds;
        private ColumnarBatch all, some;

        Opened(ReadContext context, AcidPartition.Split split) throws IOException {
            this.context = context;
            this.file = split.file();
            this.deleted = hasIds() ? context.deletedRows(file) : null;
            this.changes = context.changedRows(file);
            this.chosen = changes != null ? changes.places : isChoosing() ? new int[context.capacity] : null;
            this.records = records(split);
            Layout layout = context.layout;
            this.reader = file.ids() == null
                ? new OrcBatches(records, Layout.orc(layout.events), layout.events.fields(), numbers(layout.events.length()), context.capacity)
                : new OrcBatches(records, Layout.orc(layout.plain), layout.plainFields(), layout.plainPlaces, context.capacity);
        }

        private boolean isChoosing() {
            return deleted != null || file.ids() == null && !context.visible.isAll();
        }

        private static int[] numbers(int count) {
            int[] numbers = new int[count];
            Arrays.setAll(numbers, place -> place);
            return numbers;
        }

        private RecordReader records(AcidPartition.Split split) throws IOException {
            boolean isPlain = file.ids() != null;
            ReadContext.Prepared how = context.prepared(isPlain);
            OrcFile.ReaderOptions options = OrcFile.readerOptions(how.job);
            if (file.isCut()) options.maxLength(file.size());
            Path path = new Path(file.path());
            Reader source = !file.isCut() && file.size() <= SMALL
                ? SmallOrcFile.open(path, (int) file.size(), options) : OrcFile.createReader(path, options);
            Reader.Options wanted = how.options(source, split.start(), split.length());
            if (!isPlain && deleted != null && !context.layout.areIdsWanted) {
                run = AcidOrcReader.Run.of(source);
                if (run != null) {
                    boolean[] included = wanted.getInclude().clone();
                    Arrays.fill(included, 1 + EventColumns.ORIGINAL, 2 + EventColumns.ROW_ID, false);
                    wanted.include(included);
                }
            }
            return context.isMoving ? new ExactRecords(source.rows(wanted), file.path()) : source.rows(wanted);
        }

        /** Returns the next batch with a row that counts, or null. */
        ColumnarBatch next() throws IOException {
            while (true) {
                long position = records.getRowNumber();  // the position of the batch's first row, after all rows that ORC skipped
                if (!reader.nextKeyValue()) return null;
                ColumnarBatch read = reader.batch();
                if (all == null) arrange(read);
                int count = read.numRows();
                if (plainRowIds != null) {
                    for (int row = 0; row < count; ++row) plainRowIds.put(row, file.ids().first() + position + row);
                }
                int left = changes != null ? change(read, position, count) : chosen == null ? count : choose(read, position, count);
                if (left == 0) continue;
                ColumnarBatch result = left == count && changes == null ? all : some;
                result.setNumRows(left);
                if (context.buckets != null) context.buckets.require(result, file);
                return result;
            }
        }

        private int choose(ColumnarBatch read, long position, int count) {
            int left = 0;
            for (int row = 0; row < count; ++row) {
                if ((file.ids() != null || isVisible(read, row)) && !isDeleted(read, position, row)) chosen[left++] = row;
            }
            return left;
        }

        private int change(ColumnarBatch read, long position, int count) {
            changes.begin();
            ScanPlan.PlainIds ids = file.ids();
            for (int row = 0; row < count; ++row) {
                if (ids != null) {
                    changes.add(row, ids.writeId(), ids.writeId(), ids.bucket(), ids.first() + position + row);
                } else if (isVisible(read, row)) {
                    changes.add(
                        row, read.column(EventColumns.CURRENT).getLong(row), read.column(EventColumns.ORIGINAL).getLong(row),
                        read.column(EventColumns.BUCKET).getInt(row), read.column(EventColumns.ROW_ID).getLong(row));
                }
            }
            return changes.count();
        }

        private boolean isVisible(ColumnarBatch events, int row) {
            ScanPlan.Visible visible = context.visible;
            if (visible.isNotDelete() && events.column(EventColumns.OPERATION).getInt(row) >= EventColumns.DELETE) return false;
            if (visible.highWatermark() == null && visible.hidden().length == 0) return true;
            long by = events.column(EventColumns.CURRENT).getLong(row);
            if (visible.highWatermark() != null && by > visible.highWatermark()) return false;
            if (visible.after() != null && by <= visible.after()) return false;
            return Arrays.binarySearch(visible.hidden(), by) < 0;
        }

        private boolean isDeleted(ColumnarBatch read, long position, int row) {
            if (deleted == null) return false;
            if (file.ids() != null) {
                return deleted.contains(file.ids().writeId(), file.ids().bucket(), file.ids().first() + position + row);
            }
            if (run != null) return deleted.contains(run.writeId, run.bucket, run.first + position + row);
            return deleted.contains(
                read.column(EventColumns.ORIGINAL).getLong(row), read.column(EventColumns.BUCKET).getInt(row),
                read.column(EventColumns.ROW_ID).getLong(row));
        }

        /** Sets up the columns of the result. They stay the same objects from batch to batch. */
        private void arrange(ColumnarBatch read) {
            Layout layout = context.layout;
            ColumnVector[] columns = new ColumnVector[layout.sources.size()], through = columns.clone();
            for (int column = 0; column < columns.length; ++column) {
                Layout.Source source = layout.sources.get(column);
                columns[column] = switch (source.from()) {
                    case FILE -> PaddedTexts.of(
                        file.ids() == null ? read.column(EventColumns.ROW).getChild(source.place()) : read.column(source.place()), layout.padded[column]);
                    case KEY -> key(source.place(), layout.wanted.fields()[column]);
                    case ID -> id(RowId.values()[source.place()], layout.wanted.fields()[column], read);
                    case CHANGE -> changes.column(ChangeColumn.values()[source.place()]);
                };
                boolean isAsRead = chosen == null || source.from() == Layout.From.CHANGE;
                through[column] = isAsRead || ConstantColumn.is(columns[column])
                    ? columns[column] : new ChosenRows(columns[column], chosen);
            }
            all = new ColumnarBatch(columns);
            some = new ColumnarBatch(through);
        }

        private ColumnVector key(int place, StructField field) {
            return ConstantColumn.of(context.capacity, field.dataType(), context.keys.get(file.directory()), place);
        }

        private ColumnVector id(RowId id, StructField wanted, ColumnarBatch read) {
            return switch (id) {
                case ROW__ID -> new RowIdColumn(
                    (StructType) wanted.dataType(), id(RowId.WRITE_ID, wanted, read), bucketOrNull(read),
                    id(RowId.ROW, wanted, read));
                case WRITE_ID -> file.ids() == null ? read.column(EventColumns.ORIGINAL) : ConstantColumn.of(context.capacity, file.ids().writeId());
                case BUCKET -> hasIds() ? bucketOrNull(read) : bucket(RowId.NO_BUCKET);
                case ROW -> file.ids() == null ? read.column(EventColumns.ROW_ID) : plainRowIds();
                case PARTITION -> ConstantColumn.of(context.capacity, context.directories.get(file.directory()).key());
            };
        }

        private boolean hasIds() {
            return file.ids() == null || file.ids().bucket() != null;
        }

        private ColumnVector bucketOrNull(ColumnarBatch read) {
            return file.ids() == null ? read.column(EventColumns.BUCKET) : bucket(file.ids().bucket());
        }

        private ColumnVector bucket(Integer bucket) {
            return ConstantColumn.of(context.capacity, bucket);
        }

        private ColumnVector plainRowIds() {
            if (plainRowIds == null) plainRowIds = new FilledColumn(context.capacity, DataTypes.LongType);
            return plainRowIds.values();
        }

        void close() throws IOException {
            reader.close();
        }
    }
}
