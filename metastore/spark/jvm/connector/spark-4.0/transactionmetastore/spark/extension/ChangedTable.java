package transactionmetastore.spark.extension;

import org.apache.spark.sql.connector.catalog.Table;
import transactionmetastore.spark.catalog.AcidTable;

/** The table of a changelog, for a Spark that reads no changes. */
final class ChangedTable {
    private ChangedTable() {}

    static AcidTable of(Table changes) {
        return null;
    }
}
