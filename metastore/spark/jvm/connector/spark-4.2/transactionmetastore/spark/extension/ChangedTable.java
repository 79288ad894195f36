package transactionmetastore.spark.extension;

import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.execution.datasources.v2.ChangelogTable;
import transactionmetastore.spark.catalog.AcidChangelog;
import transactionmetastore.spark.catalog.AcidTable;

/** The table of a changelog. */
final class ChangedTable {
    private ChangedTable() {}

    /** Returns the table whose changes "changes" reads; null if that is no changelog of ours. */
    static AcidTable of(Table changes) {
        return changes instanceof ChangelogTable table && table.changelog() instanceof AcidChangelog log ? log.table() : null;
    }
}
