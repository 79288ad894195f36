package transactionmetastore.spark.plain;

import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import transactionmetastore.spark.internals.RowFiles;

/** Makes the readers of plain files in the tasks. */
final class PlainReaderFactory implements PartitionReaderFactory {
    private static final long serialVersionUID = 1L;

    /** The reader of each storage. */
    final List<RowFiles.Reader> readers;
    /** The place of a directory's reader among them. */
    final int[] readerOf;
    /** Whether a reader leaves out the partition keys. */
    final boolean[] lacksKeys;
    /** The values of each directory's partition. */
    final InternalRow[] keys;
    private final boolean isColumnar;
    /** The scan, in the driver: an RDD goes on reading, and so its snapshot has to be held, as long as that refers to it. */
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
