package transactionmetastore.spark.internals;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.execution.vectorized.ColumnVectorUtils;
import org.apache.spark.sql.execution.vectorized.ConstantColumnVector;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.unsafe.types.UTF8String;

/** Columns of a batch that have the same value in each row. */
public final class ConstantColumn {
    private ConstantColumn() {}

    public static ColumnVector of(int capacity, long value) {
        ConstantColumnVector column = new ConstantColumnVector(capacity, DataTypes.LongType);
        column.setLong(value);
        return column;
    }

    /** Returns an INT column; null stands for NULL. */
    public static ColumnVector of(int capacity, Integer value) {
        ConstantColumnVector column = new ConstantColumnVector(capacity, DataTypes.IntegerType);
        if (value == null) column.setNull();
        else column.setInt(value);
        return column;
    }

    public static ColumnVector of(int capacity, String value) {
        ConstantColumnVector column = new ConstantColumnVector(capacity, DataTypes.StringType);
        column.setUtf8String(UTF8String.fromString(value));
        return column;
    }

    /** Returns a column with the value at a position of a row. */
    public static ColumnVector of(int capacity, DataType type, InternalRow row, int place) {
        ConstantColumnVector column = new ConstantColumnVector(capacity, type);
        ColumnVectorUtils.populate(column, row, place);
        return column;
    }

    public static boolean is(ColumnVector column) {
        return column instanceof ConstantColumnVector;
    }
}
