package transactionmetastore.spark.plain;

import transactionmetastore.spark.planner.AcidException;

/** What is said of a file that was there when the scan was planned. */
public final class GoneFile {
    private GoneFile() {}

    public static AcidException of(String path, Exception error) {
        return new AcidException("GONE", path + " is not there any more: the snapshot that this reads has been let go of, and the table was "
            + "compacted or altered since. Make the DataFrame anew, and cache one that is to be run more than once. (" + error.getMessage() + ")", error);
    }
}
