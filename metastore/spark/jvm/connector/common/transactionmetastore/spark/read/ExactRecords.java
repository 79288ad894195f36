package transactionmetastore.spark.read;

import java.io.IOException;
import org.apache.hadoop.hive.ql.exec.vector.ColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.ListColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.MapColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.StructColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.TimestampColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.UnionColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.VectorizedRowBatch;
import org.apache.orc.RecordReader;
import transactionmetastore.spark.planner.AcidException;

/**
 * A reader of rows that will be written again. It refuses a value that Spark would change on the way.
 *
 * Spark's timestamps end with microseconds, Hive's with nanoseconds. Any such value counts, even of a row that the
 * statement does not change: which rows it changes is known only after the value has been cut.
 */
final class ExactRecords implements RecordReader {
    private static final int NANOS_OF_MICROSECOND = 1000;

    private final RecordReader records;
    private final String file;

    ExactRecords(RecordReader records, String file) {
        this.records = records;
        this.file = file;
    }

    @Override
    public boolean nextBatch(VectorizedRowBatch batch) throws IOException {
        if (!records.nextBatch(batch)) return false;
        for (ColumnVector column : batch.cols) require(column, batch.size);
        return true;
    }

    private void require(ColumnVector column, int rows) {
        if (column instanceof TimestampColumnVector times) {
            requireMicroseconds(times, rows);
        } else if (column instanceof StructColumnVector struct) {
            for (ColumnVector field : struct.fields) require(field, rows);
        } else if (column instanceof ListColumnVector list) {
            require(list.child, list.childCount);
        } else if (column instanceof MapColumnVector map) {
            require(map.keys, map.childCount);
            require(map.values, map.childCount);
        } else if (column instanceof UnionColumnVector union) {
            for (ColumnVector field : union.fields) require(field, rows);
        }
    }

    private void requireMicroseconds(TimestampColumnVector times, int rows) {
        int count = times.isRepeating ? Math.min(1, rows) : rows;
        for (int row = 0; row < count; ++row) {
            boolean isThere = times.noNulls || !times.isNull[row];
            if (isThere && times.nanos[row] % NANOS_OF_MICROSECOND != 0) {
                throw new AcidException("InvalidOperationError", file + " holds timestamps with nanoseconds, which Spark would "
                    + "cut to microseconds when it writes rows anew. Assign the column as well, name partitions without such "
                    + "values, or change the rows with Hive.");
            }
        }
    }

    @Override
    public long getRowNumber() throws IOException {
        return records.getRowNumber();
    }

    @Override
    public float getProgress() throws IOException {
        return records.getProgress();
    }

    @Override
    public void close() throws IOException {
        records.close();
    }

    @Override
    public void seekToRow(long row) throws IOException {
        records.seekToRow(row);
    }
}
