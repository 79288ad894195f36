package transactionmetastore.spark.read;

import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarArray;
import org.apache.spark.sql.vectorized.ColumnarMap;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.unsafe.types.UTF8String;

/** A view of some rows of another column: its n-th row is the other's row places[n]. Nothing is copied. */
final class ChosenRows extends ColumnVector {
    private final ColumnVector all;
    private final int[] places;
    private final ColumnVector[] children;

    ChosenRows(ColumnVector all, int[] places) {
        super(all.dataType());
        this.all = all;
        this.places = places;
        DataType type = all.dataType();
        children = new ColumnVector[type instanceof StructType struct ? struct.length() : 0];
        for (int child = 0; child < children.length; ++child) children[child] = new ChosenRows(all.getChild(child), places);
    }

    /** Does nothing: the original batch owns the columns, and closes them. */
    @Override
    public void close() {}

    @Override
    public boolean hasNull() {
        return all.hasNull();
    }

    @Override
    public int numNulls() {
        return all.numNulls();
    }

    @Override
    public boolean isNullAt(int row) {
        return all.isNullAt(places[row]);
    }

    @Override
    public boolean getBoolean(int row) {
        return all.getBoolean(places[row]);
    }

    @Override
    public byte getByte(int row) {
        return all.getByte(places[row]);
    }

    @Override
    public short getShort(int row) {
        return all.getShort(places[row]);
    }

    @Override
    public int getInt(int row) {
        return all.getInt(places[row]);
    }

    @Override
    public long getLong(int row) {
        return all.getLong(places[row]);
    }

    @Override
    public float getFloat(int row) {
        return all.getFloat(places[row]);
    }

    @Override
    public double getDouble(int row) {
        return all.getDouble(places[row]);
    }

    @Override
    public ColumnarArray getArray(int row) {
        return all.getArray(places[row]);
    }

    @Override
    public ColumnarMap getMap(int row) {
        return all.getMap(places[row]);
    }

    @Override
    public Decimal getDecimal(int row, int precision, int scale) {
        return all.getDecimal(places[row], precision, scale);
    }

    @Override
    public UTF8String getUTF8String(int row) {
        return all.getUTF8String(places[row]);
    }

    @Override
    public byte[] getBinary(int row) {
        return all.getBinary(places[row]);
    }

    @Override
    public ColumnVector getChild(int ordinal) {
        return children[ordinal];
    }
}
