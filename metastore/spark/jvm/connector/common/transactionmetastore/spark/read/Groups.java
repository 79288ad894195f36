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
 * The rows of a scan in groups: of a partition key each, and of a bucket. Where two tables have the same ones Spark joins them
 * without a shuffle.
 *
 * Rule: only columns that the scan reads can be keys. A bucket is that of the files' names, which the reader holds rows to; Spark
 * knows buckets of a single column.
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

    /** Hive has no hash of version 2 for timestamps. */
    private static boolean isHashed(DataType type) {
        return !(type instanceof StructType || type instanceof ArrayType || type instanceof MapType || type instanceof TimestampType);
    }

    /** Null where there is nothing to group by. */
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

    /** Whether the names of files say all that groups them. */
    boolean areKnownOf(List<ScanPlan.DataFile> files) {
        return bucketColumn < 0 || files.stream().allMatch(file -> file.bucket() != null);
    }

    /** The files of each group, by its key. "values": those of the partition keys by directory. */
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

    /** Null where rows need not be of the buckets of their files. */
    BucketCheck check() {
        return bucketColumn < 0 ? null : new BucketCheck(table.name(), table.hash(WriterFunction.NO_ZONE), new int[] {bucketColumn});
    }
}
