package transactionmetastore.spark.plain;

import java.io.Serializable;
import java.util.List;
import org.apache.spark.sql.connector.read.InputPartition;

/** The parts of plain files that a task reads. */
public interface PlainParts extends InputPartition {
    List<Part> parts();

    /**
     * The part of a file that begins in "length" bytes from "start" on. "directory": the number of the file's directory;
     * "size": of the whole file.
     */
    record Part(String path, int directory, long start, long length, long size) implements Serializable {
        private static final long serialVersionUID = 1L;
    }
}
