package transactionmetastore.spark.plain;

import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import transactionmetastore.spark.internals.RowFiles;

/** A factory of readers of plain files, in the tasks. */
final class PlainReaderFactory implements PartitionReaderFactory {
    private static final long serialVersionUID = 1L;

    /** One reader for each kind of storage. */
    final List<RowFiles.Reader> readers;
    /** Index of the reader for each directory. */
    final int[] readerOf;
    /** Flags of readers that leave out the partition keys. */
    final boolean[] lacksKeys;
    /** Values of the partition keys, by directory. */
    final InternalRow[] keys;
    private final boolean isColumnar;
    /**
     * The scan, in the driver. An RDD goes on reading, so the snapshot has to be held as long as the RDD refers to this
     * object.
     */
    private final transient Object scan;

    PlainReaderFactory(
            List<RowFiles.Reader> readers, int[] readerOf, boolean[] lacksKeys, InternalRow[] keys,
            boolean isColumnar, Object scan) {
        this.readers = readers;
        this.readerOf = readerOf;
        this.lacksKeys = lacksKeys;
        this.keys = keys;
        this.isColumnar = isColumnar;
        this.scan = scan;
    }

    @Override
    public boolean supportColumnarReads(InputPartition partition) {
        return isColumnar;
    }

    @Override
    public PartitionReader<InternalRow> createReader(InputPartition partition) {
        return new PlainFileReader<>(this, (PlainParts) partition);
    }

    @Override
    public PartitionReader<ColumnarBatch> createColumnarReader(InputPartition partition) {
        return new PlainFileReader<>(this, (PlainParts) partition);
    }

    @Override
    public String toString() {
        return scan == null ? "files of rows" : "files of rows of " + scan;
    }
}
