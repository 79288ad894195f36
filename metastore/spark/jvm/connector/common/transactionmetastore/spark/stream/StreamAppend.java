package transactionmetastore.spark.stream;

import org.apache.hadoop.conf.Configuration;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.write.BatchWrite;
import org.apache.spark.sql.connector.write.DataWriter;
import org.apache.spark.sql.connector.write.DataWriterFactory;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.PhysicalWriteInfo;
import org.apache.spark.sql.connector.write.WriterCommitMessage;
import org.apache.spark.sql.connector.write.streaming.StreamingDataWriterFactory;
import org.apache.spark.sql.connector.write.streaming.StreamingWrite;
import org.apache.spark.sql.types.StructType;
import transactionmetastore.spark.planner.AcidException;
import transactionmetastore.spark.txn.AcidTransaction;
import transactionmetastore.spark.txn.StreamBatch;

/**
 * A streaming query's writes of batches to a table, each batch exactly once.
 *
 * Rule: the rows of a batch and the note that the table has them are one commit. Spark repeats a batch whose end its
 * checkpoint does not know; the note shows that the table has it, and the rows that were written again are removed.
 */
public final class StreamAppend implements StreamingWrite {
    private final String table, query, checkpoint;
    private final HeldTexts texts;
    private final AcidTransaction transaction;
    private final BatchWrite write;
    private final Configuration settings;

    /**
     * Creates the writes. "row": the type of the table's rows; "write": makes the insert of a batch's rows in
     * "transaction".
     */
    public StreamAppend(
            String table, StructType row, LogicalWriteInfo info, AcidTransaction transaction, BatchWrite write, Configuration settings) {
        this.table = table;
        this.texts = HeldTexts.of(row);
        this.query = info.queryId();
        this.checkpoint = info.options().get("checkpointLocation");
        this.transaction = transaction;
        this.write = write;
        this.settings = settings;
        if (checkpoint == null) {
            throw new AcidException("InvalidInputError", "A streaming query into " + table
                + " says where its checkpoint is: .option(\"checkpointLocation\", ...).");
        }
    }

    @Override
    public StreamingDataWriterFactory createStreamingWriterFactory(PhysicalWriteInfo info) {
        return new Writers(texts, Interruption.asStop(() -> write.createBatchWriterFactory(info)));
    }

    @Override
    public void commit(long epoch, WriterCommitMessage[] messages) {
        Interruption.asStop(() -> {
            bring(epoch, messages);
            return null;
        });
    }

    private void bring(long epoch, WriterCommitMessage[] messages) {
        StreamBatch batch = StreamBatch.of(table, query, epoch, checkpoint, settings);
        if (batch.isThere(transaction.planner())) {
            write.abort(messages);
            transaction.abort();
        } else {
            transaction.brings(batch);
            write.commit(messages);
        }
    }

    @Override
    public void abort(long epoch, WriterCommitMessage[] messages) {
        write.abort(messages);
    }

    private record Writers(HeldTexts texts, DataWriterFactory ofRows) implements StreamingDataWriterFactory {
        private static final long serialVersionUID = 1L;

        @Override
        public DataWriter<InternalRow> createWriter(int partition, long task, long epoch) {
            return texts.in(ofRows.createWriter(partition, task));
        }
    }
}
