package transactionmetastore.spark.read;

import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.types.StructType;

/** What footers say of all rows of a scan: a single row of "values", in the columns "readSchema". No file is read. */
record FooterScan(AcidScan counted, StructType readSchema, List<Object> values) implements Scan, Batch {
    @Override
    public String description() {
        return counted.description() + ", " + String.join(", ", readSchema.fieldNames()) + " from footers";
    }

    @Override
    public Batch toBatch() {
        return this;
    }

    @Override
    public InputPartition[] planInputPartitions() {
        return new InputPartition[] {new Row(values.toArray())};
    }

    @Override
    public PartitionReaderFactory createReaderFactory() {
        return new Factory();
    }

    private record Row(Object[] values) implements InputPartition {
        private static final long serialVersionUID = 1L;
    }

    private static final class Factory implements PartitionReaderFactory {
        private static final long serialVersionUID = 1L;

        @Override
        public PartitionReader<InternalRow> createReader(InputPartition partition) {
            return new OneRow((Row) partition);
        }
    }

    private static final class OneRow implements PartitionReader<InternalRow> {
        private final Row row;
        private boolean isRead;

        OneRow(Row row) {
            this.row = row;
        }

        @Override
        public boolean next() {
            boolean isFirst = !isRead;
            isRead = true;
            return isFirst;
        }

        @Override
        public InternalRow get() {
            return new GenericInternalRow(row.values);
        }

        @Override
        public void close() {}
    }
}
