package transactionmetastore.spark.write;

import java.io.Serializable;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * A file in staging, or an incomplete upload, as its task reports it. "key": its partition's, null in a table without
 * partitions; "bucket": N of the bucket_N that it becomes; "statement": the statement id of its directory; "updates": the
 * number of its rows that are new versions of others; "repeated": the most frequent id of its events, "times": how many
 * have it; "upload": completes it, null in staging.
 */
record WrittenFile(String path, String key, int bucket, int statement, boolean isDelete, long rows, long updates,
                   long[] repeated, long times, String upload) implements Serializable {
    WrittenFile(String path, String key, int bucket, int statement, boolean isDelete, long rows, long updates, long[] repeated,
                long times) {
        this(path, key, bucket, statement, isDelete, rows, updates, repeated, times, null);
    }

    /** Returns the same file on its way to its final name. */
    WrittenFile uploaded(String target, String how) {
        return new WrittenFile(target, key, bucket, statement, isDelete, rows, updates, repeated, times, how);
    }

    /** Returns the file in the planner's form. */
    Map<String, Object> argument() {
        Map<String, Object> argument = new LinkedHashMap<>();
        argument.put("path", path);
        argument.put("key", key);
        argument.put("bucket", bucket);
        argument.put("statement", statement);
        argument.put("is_delete", isDelete);
        argument.put("rows", rows);
        argument.put("updates", updates);
        return argument;
    }
}
