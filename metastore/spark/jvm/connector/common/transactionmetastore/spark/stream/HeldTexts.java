package transactionmetastore.spark.stream;

import java.io.IOException;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.BoundReference;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.util.CharVarcharUtils;
import org.apache.spark.sql.connector.write.DataWriter;
import org.apache.spark.sql.connector.write.WriterCommitMessage;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import scala.jdk.javaapi.CollectionConverters;

/**
 * The texts of a stream's rows as their columns hold them: a CHAR with its blanks, and none that is too long.
 *
 * In other writes Spark puts these expressions around the values.
 */
record HeldTexts(List<Expression> columns) implements Serializable {
    static HeldTexts of(StructType row) {
        List<Expression> columns = new ArrayList<>();
        boolean isAny = false;
        for (StructField field : row.fields()) {
            Expression value = new BoundReference(columns.size(), field.dataType(), true);
            var declared = CharVarcharUtils.getRawType(field.metadata());
            isAny |= declared.isDefined();
            columns.add(declared.isDefined() ? CharVarcharUtils.stringLengthCheck(value, declared.get()) : value);
        }
        return new HeldTexts(isAny ? columns : List.of());
    }

    DataWriter<InternalRow> in(DataWriter<InternalRow> writer) {
        return columns.isEmpty() ? writer : new Writer(writer, UnsafeProjection.create(CollectionConverters.asScala(columns).toSeq()));
    }

    private record Writer(DataWriter<InternalRow> writer, UnsafeProjection held) implements DataWriter<InternalRow> {
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
