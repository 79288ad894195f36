package transactionmetastore.spark.read;

import java.util.Arrays;
import java.util.Map;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarArray;
import org.apache.spark.sql.vectorized.ColumnarMap;
import org.apache.spark.unsafe.types.UTF8String;

/** The column ROW__ID, or those of its fields that a query wants, made of existing columns; null where a row has no bucket. */
final class RowIdColumn extends ColumnVector {
    private final ColumnVector bucket;
    private final ColumnVector[] parts;

    /** Creates the column. "wanted": the struct with those fields that are wanted, by their names. */
    RowIdColumn(StructType wanted, ColumnVector writeId, ColumnVector bucket, ColumnVector rowId) {
        super(wanted);
        this.bucket = bucket;
        Map<String, ColumnVector> named = Map.of("writeid", writeId, "bucketid", bucket, "rowid", rowId);
        parts = Arrays.stream(wanted.fieldNames()).map(named::get).toArray(ColumnVector[]::new);
    }

    @Override
    public void close() {}

    @Override
    public boolean hasNull() {
        return bucket.hasNull();
    }

    @Override
    public int numNulls() {
        return bucket.numNulls();
    }

    @Override
    public boolean isNullAt(int row) {
        return bucket.isNullAt(row);
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
