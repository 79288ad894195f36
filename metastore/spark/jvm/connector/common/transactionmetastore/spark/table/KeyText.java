package transactionmetastore.spark.table;

import org.apache.spark.sql.connector.catalog.functions.BoundFunction;
import org.apache.spark.sql.connector.catalog.functions.ScalarFunction;
import org.apache.spark.sql.connector.catalog.functions.UnboundFunction;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * The function whose text of a partition key distributes and orders rows: it returns NULL for all values of the default
 * partition.
 *
 * Rule: rows of one partition come one after the other, in one task, although NULL and '' are two values to Spark.
 */
public final class KeyText implements UnboundFunction, ScalarFunction<UTF8String> {
    private static final long serialVersionUID = 1L;
    public static final String NAME = "__acid_key_text";
    public static final UTF8String DEFAULT = UTF8String.fromString("__HIVE_DEFAULT_PARTITION__");

    /** Returns true for the spellings of NULL in a partition's values. */
    public static boolean isNull(UTF8String text) {
        return text == null || text.numBytes() == 0 || text.equals(DEFAULT);
    }

    /** Returns the text of a key. Spark calls the method by this name in generated code. */
    public static UTF8String invoke(UTF8String text) {
        return isNull(text) ? null : text;
    }

    @Override
    public BoundFunction bind(StructType arguments) {
        return this;
    }

    @Override
    public DataType[] inputTypes() {
        return new DataType[] {DataTypes.StringType};
    }

    @Override
    public DataType resultType() {
        return DataTypes.StringType;
    }

    @Override
    public String description() {
        return "the text of a partition key";
    }

    @Override
    public String name() {
        return "acid_key_text";
    }

    @Override
    public String canonicalName() {
        return NAME;
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof KeyText;
    }

    @Override
    public int hashCode() {
        return NAME.hashCode();
    }
}
