package transactionmetastore.spark.catalog;

import java.util.Set;
import org.apache.spark.sql.connector.catalog.SupportsSchemaEvolution;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.catalog.TableChange;
import org.apache.spark.sql.types.DataType;

/** A table that statements WITH SCHEMA EVOLUTION alter first, as far as it says that it can be: other values Spark casts. */
public interface EvolvingTable extends SupportsSchemaEvolution {
    Set<TableCapability> EVOLVING = Set.of(TableCapability.AUTOMATIC_SCHEMA_EVOLUTION);

    /** Whether a statement may add this, a column or a field of one. */
    boolean mayAdd(String[] names, DataType type);

    /** Whether a statement may give this another type. */
    boolean mayWiden(String[] names, DataType type);

    @Override
    default boolean supportsColumnChange(TableChange.ColumnChange change) {
        if (change instanceof TableChange.AddColumn add) return mayAdd(add.fieldNames(), add.dataType());
        return change instanceof TableChange.UpdateColumnType type && mayWiden(type.fieldNames(), type.newDataType());
    }
}
