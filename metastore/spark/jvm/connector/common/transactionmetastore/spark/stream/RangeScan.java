package transactionmetastore.spark.stream;

import org.apache.spark.sql.connector.read.Batch;
import transactionmetastore.spark.table.PlannedRange;
import transactionmetastore.spark.txn.TransactionalTable;

/** A scan of a table, of which a stream reads one range of write ids after another: read.AcidScan. */
public interface RangeScan extends Batch {
    TransactionalTable table();

    /** Returns the scan of a range alone, in a new snapshot. */
    RangeScan of(PlannedRange range);

    /** Keeps its files until "release", whatever ends before. */
    void use();

    /** Lets go of the snapshot. */
    void release();
}
