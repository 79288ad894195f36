package transactionmetastore.spark.table;

import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;

/** What a row of changes says besides the row that was inserted or deleted: Spark's names of it. */
public enum ChangeColumn {
    TYPE("_change_type", DataTypes.StringType),
    VERSION("_commit_version", DataTypes.LongType),
    TIME("_commit_timestamp", DataTypes.TimestampType);

    private final String column;
    private final DataType type;

    ChangeColumn(String column, DataType type) {
        this.column = column;
        this.type = type;
    }

    public String column() {
        return column;
    }

    public DataType type() {
        return type;
    }

    /** The column of that name, or null. */
    public static ChangeColumn named(String name) {
        for (ChangeColumn each : values()) if (each.column.equals(name)) return each;
        return null;
    }
}
