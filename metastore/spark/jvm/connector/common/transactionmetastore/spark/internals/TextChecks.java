package transactionmetastore.spark.internals;

import java.io.Serializable;
import java.util.ArrayList;
import java.util.List;
import java.util.function.UnaryOperator;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.BoundReference;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.util.CharVarcharUtils;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/** Spark's checks of CHAR and VARCHAR columns that are written: they add blanks, and refuse texts that are too long. */
public record TextChecks(List<Expression> columns) implements Serializable {
    public static TextChecks of(StructType row) {
        List<Expression> columns = new ArrayList<>();
        boolean isAny = false;
        for (StructField field : row.fields()) {
            Expression value = new BoundReference(columns.size(), field.dataType(), true);
            DataType declared = DeclaredTexts.type(field);
            isAny |= declared != null;
            columns.add(declared != null ? CharVarcharUtils.stringLengthCheck(value, declared) : value);
        }
        return new TextChecks(isAny ? columns : List.of());
    }

    /** Returns a function that checks rows; null where no column needs a check. */
    public UnaryOperator<InternalRow> checking() {
        return columns.isEmpty() ? null : Rows.projection(columns);
    }
}
