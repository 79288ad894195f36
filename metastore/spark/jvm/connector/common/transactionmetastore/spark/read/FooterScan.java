package transactionmetastore.spark.read;

import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.types.StructType;
import transactionmetastore.spark.internals.Rows;

/** A scan whose answer, "rows", comes from footers. No file is read. */
record FooterScan(String counted, FooterValues wanted, List<Object[]> rows) implements Scan, Batch {
    @Override
    public StructType readSchema() {
        return wanted.type();
    }

    @Override
    public String description() {
        return counted + ", " + String.join(", ", readSchema().fieldNames()) + " from footers";
    }

    /** Returns UNSUPPORTED: otherwise Spark would ask for the rows while it plans. */
    @Override
    public ColumnarSupportMode columnarSupportMode() {
        return ColumnarSupportMode.UNSUPPORTED;
    }

    @Override
    public Batch toBatch() {
        return this;
    }

    @Override
    public InputPartition[] planInputPartitions() {
        return new InputPartition[] {new Part(rows.toArray(new Object[0][]))};
    }

    @Override
    public PartitionReaderFactory createReaderFactory() {
        return new Factory();
    }

    private record Part(Object[][] values) implements InputPartition {
        private static final long serialVersionUID = 1L;
    }

    private static final class Factory implements PartitionReaderFactory {
        private static final long serialVersionUID = 1L;

        @Override
        public PartitionReader<InternalRow> createReader(InputPartition partition) {
            return new EachRow(((Part) partition).values);
        }
    }

    private static final class EachRow implements PartitionReader<InternalRow> {
        private final Object[][] rows;
        private int read;

        EachRow(Object[][] rows) {
            this.rows = rows;
        }

        @Override
        public boolean next() {
            return read++ < rows.length;
        }

        @Override
        public InternalRow get() {
            return Rows.of(rows[read - 1]);
        }

        @Override
        public void close() {}
    }
}
