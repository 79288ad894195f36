package transactionmetastore.spark.catalog;

import java.util.Set;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.types.DataType;

/** A table for a Spark that parses WITH SCHEMA EVOLUTION but adds no columns. */
public interface EvolvingTable {
    Set<TableCapability> EVOLVING = Set.of();

    /** Returns true if a statement may add this column, or this field of a column. */
    boolean mayAdd(String[] names, DataType type);

    /** Returns true if a statement may widen the type of this column or field. */
    boolean mayWiden(String[] names, DataType type);
}
