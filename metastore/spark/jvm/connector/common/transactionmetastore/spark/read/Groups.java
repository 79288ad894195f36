package transactionmetastore.spark.read;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.Expressions;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.types.TimestampType;
import transactionmetastore.spark.internals.Rows;
import transactionmetastore.spark.table.TableShape;
import transactionmetastore.spark.table.WriterFunction;

/**
 * The groups of a scan's rows: one for each partition key and bucket. Spark joins two tables with the same groups without a
 * shuffle.
 *
 * Rule: only columns that the scan reads can be keys. A bucket is that of the files' names, and the reader checks rows
 * against it; Spark knows buckets of a single column.
 */
final class Groups {
    private static final int BUCKETING_VERSION = 2;

    private final TableShape table;
    private final List<Integer> partitionKeys = new ArrayList<>();
    private final int bucketColumn;

    private Groups(TableShape table, StructType wanted) {
        this.table = table;
        List<String> read = Arrays.asList(wanted.fieldNames());
        for (int key = 0; key < table.keys().length(); ++key) {
            if (read.contains(table.keys().fieldNames()[key])) partitionKeys.add(key);
        }
        TableShape.Buckets buckets = table.buckets();
        boolean isOfBuckets = table.plain() == null && buckets.columns().size() == 1 && buckets.version() == BUCKETING_VERSION
            && isHashed(table.columns().apply(buckets.columns().get(0)).dataType());
        bucketColumn = isOfBuckets ? read.indexOf(buckets.columns().get(0)) : -1;
    }

    /** Returns false for timestamps: Hive has no hash of version 2 for them. */
    private static boolean isHashed(DataType type) {
        return !(type instanceof StructType || type instanceof ArrayType || type instanceof MapType || type instanceof TimestampType);
    }

    /** Returns the groups; null if there is nothing to group by. */
    static Groups of(TableShape table, StructType wanted) {
        Groups groups = new Groups(table, wanted);
        return groups.partitionKeys.isEmpty() && groups.bucketColumn < 0 ? null : groups;
    }

    Expression[] keys() {
        List<Expression> keys = new ArrayList<>();
        for (int key : partitionKeys) keys.add(Expressions.identity(WriterFunction.quoted(table.keys().fieldNames()[key])));
        if (bucketColumn >= 0) keys.add(WriterFunction.ofBuckets(table.buckets()));
        return keys.toArray(new Expression[0]);
    }

    /** Returns true if the files' names show the groups of all files. */
    boolean areKnownOf(List<ScanPlan.DataFile> files) {
        return bucketColumn < 0 || files.stream().allMatch(file -> file.bucket() != null);
    }

    /** Returns the files of each group, by its key. "values": the partition keys' values by directory. */
    Map<InternalRow, List<ScanPlan.DataFile>> of(List<ScanPlan.DataFile> files, List<InternalRow> values) {
        Map<InternalRow, List<ScanPlan.DataFile>> groups = new LinkedHashMap<>();
        for (ScanPlan.DataFile file : files) {
            List<Object> key = new ArrayList<>();
            InternalRow of = values.get(file.directory());
            for (int place : partitionKeys) key.add(of.get(place, table.keys().fields()[place].dataType()));
            if (bucketColumn >= 0) key.add(file.bucket());
            groups.computeIfAbsent(Rows.of(key.toArray()), other -> new ArrayList<>()).add(file);
        }
        return groups;
    }

    /** Returns the check of buckets; null if rows need not be of their files' buckets. */
    BucketCheck check() {
        return bucketColumn < 0 ? null : new BucketCheck(table.name(), table.hash(WriterFunction.NO_ZONE), new int[] {bucketColumn});
    }
}
