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

/** Rows as Spark's engine has them. */
public final class Rows {
    private Rows() {}

    public static InternalRow of(Object... values) {
        return new GenericInternalRow(values);
    }

    /** Returns the order of values of a type that has one. */
    public static Comparator<Object> order(DataType type) {
        return TypeUtils.getInterpretedOrdering(type);
    }

    /** Returns what puts one row behind another; it answers with the same object each time. */
    public static BinaryOperator<InternalRow> joining() {
        return new JoinedRow()::apply;
    }

    /** Returns what takes the first columns of rows; it answers with the same object each time. */
    public static UnaryOperator<InternalRow> first(StructType columns) {
        List<Expression> taken = new ArrayList<>();
        for (StructField field : columns.fields()) taken.add(new BoundReference(taken.size(), field.dataType(), true));
        return projection(taken);
    }

    static UnaryOperator<InternalRow> projection(List<Expression> columns) {
        return UnsafeProjection.create(CollectionConverters.asScala(columns).toSeq())::apply;
    }
}
