package transactionmetastore.spark.catalog;

import java.util.Set;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.types.DataType;

/** A table that statements WITH SCHEMA EVOLUTION alter first. Spark asks for whatever differs, and takes a refusal for an error. */
public interface EvolvingTable {
    Set<TableCapability> EVOLVING = Set.of(TableCapability.AUTOMATIC_SCHEMA_EVOLUTION);

    /** Whether a statement may add this, a column or a field of one. */
    boolean mayAdd(String[] names, DataType type);

    /** Whether a statement may give this another type. */
    boolean mayWiden(String[] names, DataType type);
}
