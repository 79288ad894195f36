package transactionmetastore.spark.catalog;

import java.util.Map;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableProvider;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** A provider that only makes Spark send the creation of a transactional table to the catalog. */
public final class AcidProvider implements TableProvider {
    @Override
    public StructType inferSchema(CaseInsensitiveStringMap options) {
        throw new UnsupportedOperationException("A transactional table is in a catalog");
    }

    @Override
    public Table getTable(StructType schema, Transform[] partitioning, Map<String, String> properties) {
        throw new UnsupportedOperationException("A transactional table is in a catalog");
    }

    @Override
    public boolean supportsExternalMetadata() {
        return true;
    }
}
