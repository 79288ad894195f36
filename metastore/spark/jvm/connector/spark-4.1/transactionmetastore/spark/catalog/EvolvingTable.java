package transactionmetastore.spark.catalog;

import java.util.Set;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.types.DataType;

/**
 * A table that WITH SCHEMA EVOLUTION alters before the statement writes. Spark asks about every difference, and reports a
 * refusal as an error.
 */
public interface EvolvingTable {
    Set<TableCapability> EVOLVING = Set.of(TableCapability.AUTOMATIC_SCHEMA_EVOLUTION);

    /** Returns true if a statement may add this column, or this field of a column. */
    boolean mayAdd(String[] names, DataType type);

    /** Returns true if a statement may widen the type of this column or field. */
    boolean mayWiden(String[] names, DataType type);
}
