package transactionmetastore.spark.catalog;

import java.util.Set;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.types.DataType;

/** A table in a Spark that knows the words WITH SCHEMA EVOLUTION, and adds no columns. */
public interface EvolvingTable {
    Set<TableCapability> EVOLVING = Set.of();

    /** Whether a statement may add this, a column or a field of one. */
    boolean mayAdd(String[] names, DataType type);

    /** Whether a statement may give this another type. */
    boolean mayWiden(String[] names, DataType type);
}
