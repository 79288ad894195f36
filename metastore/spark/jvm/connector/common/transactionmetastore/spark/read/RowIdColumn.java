package transactionmetastore.spark.read;

import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarArray;
import org.apache.spark.sql.vectorized.ColumnarMap;
import org.apache.spark.unsafe.types.UTF8String;
import transactionmetastore.spark.catalog.RowId;

/** ROW__ID: a struct of columns that are there already; null where a row has no bucket, and so no id. */
final class RowIdColumn extends ColumnVector {
    private static final int BUCKET = 1;

    private final ColumnVector[] parts;

    RowIdColumn(ColumnVector writeId, ColumnVector bucket, ColumnVector rowId) {
        super(RowId.ROW__ID.type());
        parts = new ColumnVector[] {writeId, bucket, rowId};
    }

    @Override
    public void close() {}

    @Override
    public boolean hasNull() {
        return parts[BUCKET].hasNull();
    }

    @Override
    public int numNulls() {
        return parts[BUCKET].numNulls();
    }

    @Override
    public boolean isNullAt(int row) {
        return parts[BUCKET].isNullAt(row);
    }

    @Override
    public ColumnVector getChild(int ordinal) {
        return parts[ordinal];
    }

    private static UnsupportedOperationException structOnly() {
        return new UnsupportedOperationException("ROW__ID is a struct");
    }

    @Override
    public boolean getBoolean(int row) {
        throw structOnly();
    }

    @Override
    public byte getByte(int row) {
        throw structOnly();
    }

    @Override
    public short getShort(int row) {
        throw structOnly();
    }

    @Override
    public int getInt(int row) {
        throw structOnly();
    }

    @Override
    public long getLong(int row) {
        throw structOnly();
    }

    @Override
    public float getFloat(int row) {
        throw structOnly();
    }

    @Override
    public double getDouble(int row) {
        throw structOnly();
    }

    @Override
    public ColumnarArray getArray(int row) {
        throw structOnly();
    }

    @Override
    public ColumnarMap getMap(int row) {
        throw structOnly();
    }

    @Override
    public Decimal getDecimal(int row, int precision, int scale) {
        throw structOnly();
    }

    @Override
    public UTF8String getUTF8String(int row) {
        throw structOnly();
    }

    @Override
    public byte[] getBinary(int row) {
        throw structOnly();
    }
}
