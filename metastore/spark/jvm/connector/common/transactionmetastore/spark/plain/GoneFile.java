package transactionmetastore.spark.plain;

import transactionmetastore.spark.planner.AcidException;

/** The error for a file that existed when the scan was planned. */
public final class GoneFile {
    private GoneFile() {}

    public static AcidException of(String path, Exception error) {
        return new AcidException("GONE", path + " has been cleaned since this query was planned: the table was compacted, or altered. Make the "
            + "DataFrame anew (and unpersist what is cached of it), or let the metastore keep replaced files longer (hive.compactor.cleaner.retention.time.seconds, or the table's "
            + "acid.history.retention.days). (" + error.getMessage() + ")", error);
    }
}
