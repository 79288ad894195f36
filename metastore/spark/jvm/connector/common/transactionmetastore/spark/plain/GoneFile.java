package transactionmetastore.spark.plain;

import java.io.FileNotFoundException;

/** What is said of a file that was there when the scan was planned. */
public final class GoneFile {
    private GoneFile() {}

    public static FileNotFoundException of(String path, Exception error) {
        return new FileNotFoundException(path + " is not there any more: the snapshot that this reads has been "
            + "let go of, and the table was compacted since. Run the query again. (" + error.getMessage() + ")");
    }
}
