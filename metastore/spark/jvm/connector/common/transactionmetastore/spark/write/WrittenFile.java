package transactionmetastore.spark.write;

import java.io.Serializable;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * A file in staging, as the task says that wrote it.
 *
 * "key": its partition's, null in a table without; "bucket": N of the bucket_N that it becomes; "statement": whose
 * directory it belongs to; "updates": how many of its rows are new versions of others; "repeated": the id that most of
 * its events have, "times" how many.
 */
record WrittenFile(String path, String key, int bucket, int statement, boolean isDelete, long rows, long updates,
                   long[] repeated, long times) implements Serializable {
    /** As the planner takes it. */
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
