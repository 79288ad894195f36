package transactionmetastore.spark.internals;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.function.BinaryOperator;
import java.util.function.UnaryOperator;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.BoundReference;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.JoinedRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.util.TypeUtils;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import scala.jdk.javaapi.CollectionConverters;

/** Operations on rows in the form of Spark's engine. */
public final class Rows {
    private Rows() {}

    public static InternalRow of(Object... values) {
        return new GenericInternalRow(values);
    }

    /** Returns the order of values of a sortable type. */
    public static Comparator<Object> order(DataType type) {
        return TypeUtils.getInterpretedOrdering(type);
    }

    /** Returns a function that appends one row to another; its result is the same object each time. */
    public static BinaryOperator<InternalRow> joining() {
        return new JoinedRow()::apply;
    }

    /** Returns a function that takes the first columns of rows; its result is the same object each time. */
    public static UnaryOperator<InternalRow> first(StructType columns) {
        List<Expression> taken = new ArrayList<>();
        for (StructField field : columns.fields()) taken.add(new BoundReference(taken.size(), field.dataType(), true));
        return projection(taken);
    }

    static UnaryOperator<InternalRow> projection(List<Expression> columns) {
        return UnsafeProjection.create(CollectionConverters.asScala(columns).toSeq())::apply;
    }
}
