package transactionmetastore.spark.plain;

import java.io.Closeable;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.util.function.BinaryOperator;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.read.PartitionReader;
import scala.collection.Iterator;
import transactionmetastore.spark.internals.Rows;
/** A reader of one task's files, one after another: row by row, or in batches. */
final class PlainFileReader<T> implements PartitionReader<T> {
    private final PlainReaderFactory how;
    private final java.util.Iterator<PlainParts.Part> parts;
    private final BinaryOperator<InternalRow> joined = Rows.joining();
    private PlainParts.Part part;
    private Iterator<?> rows;
    private InternalRow keys;
    private Object current;

    PlainFileReader(PlainReaderFactory how, PlainParts partition) {
        this.how = how;
        this.parts = partition.parts().iterator();
    }

    @Override
    public boolean next() throws IOException {
        while (true) {
            if (rows == null) {
                if (!parts.hasNext()) return false;
                part = parts.next();
            }
            if (isRead()) return true;
            close();
        }
    }

    /** Returns true if the file has another row, or batch. */
    private boolean isRead() throws IOException {
        try {
            if (rows == null) rows = opened();
            if (!rows.hasNext()) return false;
            current = rows.next();
            return true;
        } catch (Exception error) {  // Scala declares no checked exceptions
            if (error instanceof FileNotFoundException) throw GoneFile.of(part.path(), error);
            throw error;
        }
    }

    private Iterator<?> opened() {
        int reader = how.readerOf[part.directory()];
        keys = how.lacksKeys[reader] ? how.keys[part.directory()] : null;
        return how.readers.get(reader).read(part.path(), part.start(), part.length(), part.size(), how.keys[part.directory()]);
    }

    @Override
    @SuppressWarnings("unchecked")  // a batch of rows is a row to Spark's readers of files
    public T get() {
        return (T) (keys == null ? current : joined.apply((InternalRow) current, keys));
    }

    @Override
    public void close() throws IOException {
        if (rows instanceof Closeable open) open.close();
        rows = null;
    }
}
