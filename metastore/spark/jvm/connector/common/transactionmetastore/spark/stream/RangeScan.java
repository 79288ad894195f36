package transactionmetastore.spark.stream;

import org.apache.spark.sql.connector.read.Batch;
import transactionmetastore.spark.table.PlannedRange;
import transactionmetastore.spark.txn.TransactionalTable;

/** A scan of a table, of which a stream reads one range of write ids after another: read.AcidScan. */
public interface RangeScan extends Batch {
    TransactionalTable table();

    /** Returns the scan of a range alone, in a new snapshot. */
    RangeScan of(PlannedRange range);

    /** Keeps the scan's files until "release", even if the statement ends before. */
    void use();

    /** Releases the snapshot. */
    void release();
}
