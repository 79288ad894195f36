package transactionmetastore.spark.internals;

import org.apache.spark.sql.execution.datasources.orc.OrcUtils;
import org.apache.spark.sql.types.DataType;

/** ORC's types. */
public final class OrcTypes {
    private OrcTypes() {}

    /** Returns the text of the type that columns of a type of Spark's have in files. */
    public static String text(DataType type) {
        return OrcUtils.getOrcSchemaString(type);
    }
}
