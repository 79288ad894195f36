package transactionmetastore.spark.internals;

import org.apache.spark.sql.execution.vectorized.OnHeapColumnVector;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.vectorized.ColumnVector;

/** A column of a batch that is filled value by value. */
public final class FilledColumn {
    private final OnHeapColumnVector values;

    public FilledColumn(int capacity, DataType type) {
        values = new OnHeapColumnVector(capacity, type);
    }

    public void reset() {
        values.reset();
    }

    public void put(int row, long value) {
        values.putLong(row, value);
    }

    public void put(int row, byte[] value) {
        values.putByteArray(row, value);
    }

    public void putNull(int row) {
        values.putNull(row);
    }

    public ColumnVector values() {
        return values;
    }
}
