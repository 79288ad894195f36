package transactionmetastore.spark.table;

import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;

/** The columns of a changelog beside those of the table, by Spark's names. */
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

    /** Returns the column of that name, or null. */
    public static ChangeColumn named(String name) {
        for (ChangeColumn each : values()) if (each.column.equals(name)) return each;
        return null;
    }
}
