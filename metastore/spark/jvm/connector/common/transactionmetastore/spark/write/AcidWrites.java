package transactionmetastore.spark.write;

import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.RowLevelOperationBuilder;
import org.apache.spark.sql.connector.write.RowLevelOperationInfo;
import org.apache.spark.sql.connector.write.WriteBuilder;
import transactionmetastore.spark.catalog.AcidTable;
import transactionmetastore.spark.planner.AcidException;

/** Where a table's writes begin. */
public final class AcidWrites {
    private AcidWrites() {}

    public static WriteBuilder newWriteBuilder(AcidTable table, LogicalWriteInfo info) {
        throw refused(table);
    }

    public static RowLevelOperationBuilder newRowLevelOperationBuilder(AcidTable table, RowLevelOperationInfo info) {
        throw refused(table);
    }

    private static AcidException refused(AcidTable table) {
        return new AcidException("UNSUPPORTED", "The catalog does not write " + table.name()
            + " yet: write it with acid(spark) of metastore.spark.");
    }
}
