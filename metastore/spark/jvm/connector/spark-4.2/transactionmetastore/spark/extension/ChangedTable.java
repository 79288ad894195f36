package transactionmetastore.spark.extension;

import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.execution.datasources.v2.ChangelogTable;
import transactionmetastore.spark.catalog.AcidChangelog;
import transactionmetastore.spark.catalog.AcidTable;

/** The table whose changes are read. */
final class ChangedTable {
    private ChangedTable() {}

    /** Null of what is no table of changes of ours. */
    static AcidTable of(Table changes) {
        return changes instanceof ChangelogTable table && table.changelog() instanceof AcidChangelog log ? log.table() : null;
    }
}
