package transactionmetastore.spark.catalog;

import java.util.Set;
import org.apache.spark.sql.connector.catalog.SupportsSchemaEvolution;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.catalog.TableChange;
import org.apache.spark.sql.types.DataType;

/**
 * A table that WITH SCHEMA EVOLUTION alters before the statement writes, where the table allows it. Spark casts all other
 * values.
 */
public interface EvolvingTable extends SupportsSchemaEvolution {
    Set<TableCapability> EVOLVING = Set.of(TableCapability.AUTOMATIC_SCHEMA_EVOLUTION);

    /** Returns true if a statement may add this column, or this field of a column. */
    boolean mayAdd(String[] names, DataType type);

    /** Returns true if a statement may widen the type of this column or field. */
    boolean mayWiden(String[] names, DataType type);

    @Override
    default boolean supportsColumnChange(TableChange.ColumnChange change) {
        if (change instanceof TableChange.AddColumn add) return mayAdd(add.fieldNames(), add.dataType());
        return change instanceof TableChange.UpdateColumnType type && mayWiden(type.fieldNames(), type.newDataType());
    }
}
