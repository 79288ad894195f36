package transactionmetastore.spark.catalog;

import org.apache.spark.sql.connector.catalog.MetadataColumn;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;

/**
 * The hidden columns of an ACID table: Hive's ROW__ID for users, and what row-level operations name a row by.
 *
 * A row is named by its write id, bucket and row id inside its partition: Hive numbers the rows of each for itself.
 */
public enum RowId {
    ROW__ID(new StructType()
        .add("writeid", DataTypes.LongType).add("bucketid", DataTypes.IntegerType).add("rowid", DataTypes.LongType)),
    WRITE_ID(DataTypes.LongType),
    BUCKET(DataTypes.IntegerType),
    ROW(DataTypes.LongType),
    PARTITION(DataTypes.StringType);

    private final DataType type;

    RowId(DataType type) {
        this.type = type;
    }

    /** As SQL names it. */
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

    /** The column of that name, or null. */
    public static RowId named(String name) {
        for (RowId one : values()) if (one.column().equalsIgnoreCase(name)) return one;
        return null;
    }

    static MetadataColumn[] columns() {
        MetadataColumn[] columns = new MetadataColumn[values().length];
        for (RowId one : values()) columns[one.ordinal()] = new Hidden(one);
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

        /** Rows of files whose name tells no bucket have no id. */
        @Override
        public boolean isNullable() {
            return id == ROW__ID;
        }
    }
}
