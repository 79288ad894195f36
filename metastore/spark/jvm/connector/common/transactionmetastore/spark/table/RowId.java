package transactionmetastore.spark.table;

import org.apache.spark.sql.connector.catalog.MetadataColumn;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;

/**
 * The hidden columns of an ACID table: Hive's ROW__ID for users, and the row's id for row-level operations.
 *
 * A row's id is its write id, bucket and row id inside its partition: Hive numbers the rows of each partition separately.
 */
public enum RowId {
    ROW__ID(new StructType()
        .add("writeid", DataTypes.LongType).add("bucketid", DataTypes.IntegerType).add("rowid", DataTypes.LongType)),
    WRITE_ID(DataTypes.LongType),
    BUCKET(DataTypes.IntegerType),
    ROW(DataTypes.LongType),
    PARTITION(DataTypes.StringType);

    /** The BUCKET of rows without an id. NULL is not possible: Spark takes a row's id for never NULL, and would read 0. */
    public static final int NO_BUCKET = -1;

    private final DataType type;

    RowId(DataType type) {
        this.type = type;
    }

    /** Returns the column's name in SQL. */
    public String column() {
        return switch (this) {
            case ROW__ID -> "ROW__ID";
            case WRITE_ID -> "__acid_writeid";
            case BUCKET -> "__acid_bucketid";
            case ROW -> "__acid_rowid";
            case PARTITION -> "__acid_partition";
        };
    }

    public DataType type() {
        return type;
    }

    /** Returns the column of that name, or null. */
    public static RowId named(String name) {
        for (RowId id : values()) if (id.column().equalsIgnoreCase(name)) return id;
        return null;
    }

    public static MetadataColumn[] columns() {
        MetadataColumn[] columns = new MetadataColumn[values().length];
        for (RowId id : values()) columns[id.ordinal()] = new Hidden(id);
        return columns;
    }

    private record Hidden(RowId id) implements MetadataColumn {
        @Override
        public String name() {
            return id.column();
        }

        @Override
        public DataType dataType() {
            return id.type;
        }

        /** Returns true for ROW__ID: rows of files without a bucket in their names have no id. */
        @Override
        public boolean isNullable() {
            return id == ROW__ID;
        }
    }
}
