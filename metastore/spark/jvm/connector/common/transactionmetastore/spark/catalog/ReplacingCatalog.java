package transactionmetastore.spark.catalog;

import java.util.Map;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.StagedTable;
import org.apache.spark.sql.connector.catalog.StagingTableCatalog;
import org.apache.spark.sql.connector.expressions.Transform;
import transactionmetastore.spark.planner.AcidException;

/**
 * A catalog for a statement that replaces a transactional table.
 *
 * RoutingRule puts it beside the table's name. Spark lets such a catalog replace the definition and the rows in one step,
 * and begins no transaction itself.
 */
final class ReplacingCatalog extends AcidCatalogBase implements StagingTableCatalog {
    @Override
    AcidCatalogBase newCatalog() {
        return new ReplacingCatalog();
    }

    @Override
    @SuppressWarnings("deprecation")
    public StagedTable stageReplace(Identifier ident, Column[] columns, Transform[] partitions, Map<String, String> properties) {
        try {
            return Replacement.of(replaced(ident), Creation.of(ident, columns, partitions, properties), properties);
        } catch (NoSuchTableException gone) {
            throw new AcidException("NoSuchObjectError", ident + " was dropped while this statement began: run it again.", gone);
        }
    }

    @Override
    @SuppressWarnings("deprecation")
    public StagedTable stageCreateOrReplace(
            Identifier ident, Column[] columns, Transform[] partitions, Map<String, String> properties) {
        return stageReplace(ident, columns, partitions, properties);
    }

    private AcidTable replaced(Identifier ident) throws NoSuchTableException {
        AcidTable table = acidTable(ident, null);
        if (table == null) throw new NoSuchTableException(ident);
        return table;
    }
}
