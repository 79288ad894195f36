package transactionmetastore.spark.table;

import java.io.Serializable;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;
import transactionmetastore.spark.files.EventColumns;
import transactionmetastore.spark.plain.PlainStorage;

/**
 * A table in the form that its writer needs: columns, partition keys, buckets.
 *
 * A row has "columns", then "keys". "plain": the storage of an insert-only table's files, null for a full ACID table.
 */
public record TableShape(String name, String location, StructType columns, StructType keys, Buckets buckets, PlainStorage plain)
        implements Serializable {
    public static TableShape of(TableDefinition table) {
        TableDefinition.Buckets buckets = table.buckets();
        List<String> hiveTypes = buckets.columns().stream().map(name -> typeOf(table, name)).toList();
        return new TableShape(table.name(), table.location(), table.rowType(), table.partitionType(),
            new Buckets(buckets.count(), buckets.version(), buckets.columns(), hiveTypes, buckets.sort()),
            table.isFullAcid() ? null : table.storage());
    }

    private static String typeOf(TableDefinition table, String column) {
        return table.columns().stream().filter(field -> field.name().equals(column)).findFirst()
            .orElseThrow(() -> new IllegalStateException(table.name() + " is bucketed by " + column)).type();
    }

    /** Returns the type of Spark's rows. */
    public StructType row() {
        StructType row = columns;
        for (var key : keys.fields()) row = row.add(key);
        return row;
    }

    /** Returns the columns of the table's events. */
    public StructType events() {
        return EventColumns.around(columns);
    }

    /** Returns the hash of the table's buckets; null without buckets. "zone": the time zone of timestamps' texts. */
    public BucketHash hash(String zone) {
        if (buckets.count() == 0) return null;
        List<DataType> types = new ArrayList<>();
        for (int place : bucketPlaces()) types.add(columns.fields()[place].dataType());
        return new BucketHash(buckets.version(), buckets.count(), buckets.hiveTypes(), types, zone);
    }

    /** Returns the positions of the bucketing columns in a row. */
    public int[] bucketPlaces() {
        return buckets.columns().stream().mapToInt(columns::fieldIndex).toArray();
    }

    /**
     * The buckets of CLUSTERED BY; a count of 0 means none. "hiveTypes": types of the columns, as in the metastore;
     * "sort": the columns by which each file is sorted, with their directions.
     */
    public record Buckets(int count, int version, List<String> columns, List<String> hiveTypes, List<TableDefinition.Sorted> sort)
            implements Serializable {
        public static final Buckets NONE = new Buckets(0, 2, List.of(), List.of(), List.of());
    }
}
