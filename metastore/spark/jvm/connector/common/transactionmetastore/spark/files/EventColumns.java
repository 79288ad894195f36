package transactionmetastore.spark.files;

import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.Metadata;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/**
 * The columns of full ACID files, and their positions. metastore/acid/events.py has the same, and a file of test vectors
 * keeps both equal.
 */
public final class EventColumns {
    public static final int OPERATION = 0, ORIGINAL = 1, BUCKET = 2, ROW_ID = 3, CURRENT = 4, ROW = 5;
    public static final int INSERT = 0, DELETE = 2;

    private EventColumns() {}

    /** Returns the type of an event with a row of this type. */
    public static StructType around(StructType row) {
        return new StructType(new StructField[] {
            new StructField("operation", DataTypes.IntegerType, true, Metadata.empty()),
            new StructField("originalTransaction", DataTypes.LongType, true, Metadata.empty()),
            new StructField("bucket", DataTypes.IntegerType, true, Metadata.empty()),
            new StructField("rowId", DataTypes.LongType, true, Metadata.empty()),
            new StructField("currentTransaction", DataTypes.LongType, true, Metadata.empty()),
            new StructField("row", row, true, Metadata.empty())});
    }
}
