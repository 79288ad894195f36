package transactionmetastore.spark.read;

import java.io.Serializable;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import transactionmetastore.spark.planner.AcidException;
import transactionmetastore.spark.table.BucketHash;

/**
 * A check that a file's rows are of the bucket in its name, for joins that rely on it. "place": the position of the
 * bucketing column.
 */
record BucketCheck(String table, BucketHash hash, int[] place) implements Serializable {
    private static final long serialVersionUID = 1L;

    void require(ColumnarBatch rows, ScanPlan.DataFile file) {
        for (int row = 0; row < rows.numRows(); ++row) {
            int bucket = hash.bucket(rows.getRow(row), place);
            if (bucket == file.bucket()) continue;
            throw new AcidException("InvalidOperationError", file.path() + " holds a row of bucket " + bucket + ", which its name does not "
                + "say: the files of " + table + " do not keep to CLUSTERED BY, and cannot be joined bucket by bucket. Set "
                + "spark.sql.sources.v2.bucketing.enabled to false, or write the table anew (INSERT OVERWRITE).");
        }
    }
}
