package transactionmetastore.spark.read;

import org.apache.spark.broadcast.Broadcast;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/** A factory of readers, in the tasks. */
final class AcidReaderFactory implements PartitionReaderFactory {
    private static final long serialVersionUID = 1L;

    private final Broadcast<ReadContext> context;
    /**
     * The scan, in the driver. An RDD goes on reading, so the snapshot has to be held as long as the RDD refers to this
     * object.
     */
    private final transient AcidScan scan;

    AcidReaderFactory(Broadcast<ReadContext> context, AcidScan scan) {
        this.context = context;
        this.scan = scan;
    }

    @Override
    public boolean supportColumnarReads(InputPartition partition) {
        return true;
    }

    @Override
    public PartitionReader<ColumnarBatch> createColumnarReader(InputPartition partition) {
        AcidPartition parts = partition instanceof AcidPartition.Keyed keyed ? keyed.partition() : (AcidPartition) partition;
        return new AcidFileReader(context.value(), parts);
    }

    @Override
    public PartitionReader<InternalRow> createReader(InputPartition partition) {
        throw new UnsupportedOperationException("ACID files are read in batches");
    }

    @Override
    public String toString() {
        return scan == null ? "ACID files" : scan.description();
    }
}
