package transactionmetastore.spark.files;

import java.io.IOException;
import java.util.Arrays;
import org.apache.hadoop.hive.ql.exec.vector.VectorizedRowBatch;
import org.apache.hadoop.mapreduce.InputSplit;
import org.apache.hadoop.mapreduce.RecordReader;
import org.apache.hadoop.mapreduce.TaskAttemptContext;
import org.apache.orc.TypeDescription;
import org.apache.spark.memory.MemoryMode;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.execution.datasources.orc.OrcColumnVector;
import org.apache.spark.sql.execution.datasources.orc.OrcColumnarBatchReader;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/**
 * A reader of an open ORC file, whose batches are the columns of Spark's vectorized reader.
 *
 * Spark's reader would open files itself, with ORC's own reader, and decode the condition for each file; its columns cannot
 * be created without it. So this class lets Spark's reader create its columns around an existing batch instead of a new
 * one, and open nothing: ORC fills that batch, and Spark's columns show it.
 */
public final class OrcBatches extends RecordReader<Object, Object> {
    private final org.apache.orc.RecordReader records;
    private final OrcColumnarBatchReader columns;
    private final VectorizedRowBatch filled;
    private final ColumnarBatch shown;

    /**
     * Creates a reader. "schema": the request for the file, as ORC's text; "fields": the columns of the batches; "places":
     * the position of each in the schema.
     */
    public OrcBatches(org.apache.orc.RecordReader records, String schema, StructField[] fields, int[] places, int capacity) {
        this.records = records;
        this.columns = new OrcColumnarBatchReader(capacity, MemoryMode.ON_HEAP);
        this.filled = TypeDescription.fromString(schema).createRowBatch(capacity);
        int[] ofNoKey = new int[fields.length];
        Arrays.fill(ofNoKey, -1);
        columns.initBatch(new Given(filled), fields, Arrays.copyOf(places, places.length), ofNoKey, InternalRow.empty());
        this.shown = columns.getCurrentValue();
    }

    /** A type that returns an existing batch. */
    private static final class Given extends TypeDescription {
        private static final long serialVersionUID = 1L;

        private final transient VectorizedRowBatch batch;

        Given(VectorizedRowBatch batch) {
            super(TypeDescription.Category.STRUCT);
            this.batch = batch;
        }

        @Override
        public VectorizedRowBatch createRowBatch(int capacity) {
            return batch;
        }
    }

    @Override
    public boolean nextKeyValue() throws IOException {
        records.nextBatch(filled);
        shown.setNumRows(filled.size);
        for (int column = 0; column < shown.numCols(); ++column) ((OrcColumnVector) shown.column(column)).setBatchSize(filled.size);
        return filled.size > 0;
    }

    /** Returns the batch, always the same object. */
    public ColumnarBatch batch() {
        return shown;
    }

    @Override
    public Object getCurrentValue() {
        return shown;
    }

    @Override
    public Object getCurrentKey() {
        return null;
    }

    @Override
    public float getProgress() throws IOException {
        return records.getProgress();
    }

    @Override
    public void initialize(InputSplit split, TaskAttemptContext context) {
        // the file is open already
    }

    @Override
    public void close() throws IOException {
        columns.close();
        records.close();
    }
}
