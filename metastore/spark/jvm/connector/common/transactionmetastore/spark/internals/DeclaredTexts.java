package transactionmetastore.spark.internals;

import org.apache.spark.sql.catalyst.util.CharVarcharCodegenUtils;
import org.apache.spark.sql.catalyst.util.CharVarcharUtils;
import org.apache.spark.sql.types.CharType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;

/** Declared types of CHAR and VARCHAR columns. Spark's plans have STRING for these, and the declared type as metadata. */
public final class DeclaredTexts {
    private DeclaredTexts() {}

    /** Returns a column's type with its CHAR and VARCHAR; null where it has none. */
    public static DataType type(StructField column) {
        return CharVarcharUtils.getRawType(column.metadata()).getOrElse(() -> null);
    }

    /** Returns the length of a CHAR, up to which values are padded; 0 for any other type. */
    public static int blanksUpTo(StructField column) {
        return type(column) instanceof CharType text ? text.length() : 0;
    }

    /** Returns columns as plans have them: of type STRING, with the declared type as metadata. */
    public static StructType asStrings(StructType declared) {
        return CharVarcharUtils.replaceCharVarcharWithStringInSchema(declared);
    }

    /** Returns a text with the blanks that files may lack. */
    public static UTF8String padded(UTF8String text, int length) {
        return CharVarcharCodegenUtils.readSidePadding(text, length);
    }
}
