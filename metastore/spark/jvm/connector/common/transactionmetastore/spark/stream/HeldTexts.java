package transactionmetastore.spark.stream;

import java.io.IOException;
import java.io.Serializable;
import java.util.function.UnaryOperator;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.write.DataWriter;
import org.apache.spark.sql.connector.write.WriterCommitMessage;
import org.apache.spark.sql.types.StructType;
import transactionmetastore.spark.internals.TextChecks;
/**
 * Checks of texts in a stream's rows: a CHAR is padded with blanks, and a text that is too long is refused. In other
 * writes Spark itself adds expressions for this.
 */
record HeldTexts(TextChecks columns) implements Serializable {
    static HeldTexts of(StructType row) {
        return new HeldTexts(TextChecks.of(row));
    }

    DataWriter<InternalRow> in(DataWriter<InternalRow> writer) {
        UnaryOperator<InternalRow> held = columns.checking();
        return held == null ? writer : new Writer(writer, held);
    }

    private record Writer(DataWriter<InternalRow> writer, UnaryOperator<InternalRow> held) implements DataWriter<InternalRow> {
        @Override
        public void write(InternalRow row) throws IOException {
            writer.write(held.apply(row));
        }

        @Override
        public WriterCommitMessage commit() throws IOException {
            return writer.commit();
        }

        @Override
        public void abort() throws IOException {
            writer.abort();
        }

        @Override
        public void close() throws IOException {
            writer.close();
        }
    }
}
