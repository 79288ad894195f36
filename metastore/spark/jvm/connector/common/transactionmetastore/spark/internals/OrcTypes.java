package transactionmetastore.spark.internals;

import org.apache.spark.sql.execution.datasources.orc.OrcUtils;
import org.apache.spark.sql.types.DataType;

/** Conversion of Spark's types to ORC's. */
public final class OrcTypes {
    private OrcTypes() {}

    /** Returns ORC's text for the type that files use for a type of Spark's. */
    public static String text(DataType type) {
        return OrcUtils.getOrcSchemaString(type);
    }
}
