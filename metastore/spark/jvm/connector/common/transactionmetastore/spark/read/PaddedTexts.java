package transactionmetastore.spark.read;

import org.apache.spark.sql.types.CharType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarArray;
import org.apache.spark.sql.vectorized.ColumnarMap;
import org.apache.spark.unsafe.types.UTF8String;
import transactionmetastore.spark.internals.DeclaredTexts;

/**
 * A CHAR column, or a struct with such fields, with the blanks that files may lack. Spark adds blanks to the rows that a
 * SELECT or a DELETE reads, but not to the target of an UPDATE or a MERGE, which would miss these rows.
 */
final class PaddedTexts extends ColumnVector {
    private final ColumnVector read;
    private final int length;
    private final ColumnVector[] children;

    private PaddedTexts(ColumnVector read, DataType declared) {
        super(read.dataType());
        this.read = read;
        this.length = declared instanceof CharType text ? text.length() : 0;
        StructType wanted = read.dataType() instanceof StructType struct ? struct : new StructType();
        children = new ColumnVector[wanted.length()];
        for (int child = 0; child < children.length; ++child) {
            children[child] = of(read.getChild(child), ((StructType) declared).apply(wanted.fieldNames()[child]).dataType());
        }
    }

    /**
     * Returns the column with its blanks. "declared": the column's type, which may have fields that are not read; null if
     * no text is padded.
     */
    static ColumnVector of(ColumnVector read, DataType declared) {
        return declared != null && isPadded(declared) ? new PaddedTexts(read, declared) : read;
    }

    private static boolean isPadded(DataType declared) {
        if (!(declared instanceof StructType struct)) return declared instanceof CharType;
        for (var field : struct.fields()) if (isPadded(field.dataType())) return true;
        return false;
    }

    /** Does nothing: the batch that was read owns the column, and closes it. */
    @Override
    public void close() {}

    @Override
    public boolean hasNull() {
        return read.hasNull();
    }

    @Override
    public int numNulls() {
        return read.numNulls();
    }

    @Override
    public boolean isNullAt(int row) {
        return read.isNullAt(row);
    }

    @Override
    public UTF8String getUTF8String(int row) {
        UTF8String text = read.getUTF8String(row);
        return text == null ? null : DeclaredTexts.padded(text, length);
    }

    @Override
    public ColumnVector getChild(int ordinal) {
        return children[ordinal];
    }

    @Override
    public boolean getBoolean(int row) {
        throw new UnsupportedOperationException();
    }

    @Override
    public byte getByte(int row) {
        throw new UnsupportedOperationException();
    }

    @Override
    public short getShort(int row) {
        throw new UnsupportedOperationException();
    }

    @Override
    public int getInt(int row) {
        throw new UnsupportedOperationException();
    }

    @Override
    public long getLong(int row) {
        throw new UnsupportedOperationException();
    }

    @Override
    public float getFloat(int row) {
        throw new UnsupportedOperationException();
    }

    @Override
    public double getDouble(int row) {
        throw new UnsupportedOperationException();
    }

    @Override
    public ColumnarArray getArray(int row) {
        throw new UnsupportedOperationException();
    }

    @Override
    public ColumnarMap getMap(int row) {
        throw new UnsupportedOperationException();
    }

    @Override
    public Decimal getDecimal(int row, int precision, int scale) {
        throw new UnsupportedOperationException();
    }

    @Override
    public byte[] getBinary(int row) {
        return read.getBinary(row);
    }
}
