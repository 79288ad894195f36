package transactionmetastore.spark.catalog;

import org.apache.spark.sql.connector.catalog.Table;

/** The table whose changes are read, where Spark reads no changes. */
final class ChangedTable {
    private ChangedTable() {}

    static AcidTable of(Table changes) {
        return null;
    }
}
