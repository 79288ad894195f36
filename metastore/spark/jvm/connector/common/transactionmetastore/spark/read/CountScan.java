package transactionmetastore.spark.read;

import java.util.Arrays;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;

/** The number of rows of a scan: a single row, with that number in each of "columns". No file is read. */
record CountScan(AcidScan counted, int columns) implements Scan, Batch {
    @Override
    public StructType readSchema() {
        StructType type = new StructType();
        for (int column = 0; column < columns; ++column) type = type.add("count_" + column, DataTypes.LongType, false);
        return type;
    }

    @Override
    public String description() {
        return counted.description() + ", count(*) from footers";
    }

    @Override
    public Batch toBatch() {
        return this;
    }

    @Override
    public InputPartition[] planInputPartitions() {
        return new InputPartition[] {new Counted(counted.rowCount(), columns)};
    }

    @Override
    public PartitionReaderFactory createReaderFactory() {
        return new Factory();
    }

    private record Counted(long rows, int columns) implements InputPartition {
        private static final long serialVersionUID = 1L;
    }

    private static final class Factory implements PartitionReaderFactory {
        private static final long serialVersionUID = 1L;

        @Override
        public PartitionReader<InternalRow> createReader(InputPartition partition) {
            return new OneRow((Counted) partition);
        }
    }

    private static final class OneRow implements PartitionReader<InternalRow> {
        private final Counted counted;
        private boolean isRead;

        OneRow(Counted counted) {
            this.counted = counted;
        }

        @Override
        public boolean next() {
            boolean isFirst = !isRead;
            isRead = true;
            return isFirst;
        }

        @Override
        public InternalRow get() {
            Object[] values = new Object[counted.columns];
            Arrays.fill(values, counted.rows);
            return new GenericInternalRow(values);
        }

        @Override
        public void close() {}
    }
}
