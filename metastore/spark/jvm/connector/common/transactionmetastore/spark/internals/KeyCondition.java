package transactionmetastore.spark.internals;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.function.BinaryOperator;
import org.apache.spark.api.python.PythonUtils;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.BoundReference;
import org.apache.spark.sql.catalyst.expressions.Contains;
import org.apache.spark.sql.catalyst.expressions.EndsWith;
import org.apache.spark.sql.catalyst.expressions.EqualNullSafe;
import org.apache.spark.sql.catalyst.expressions.EqualTo;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GreaterThan;
import org.apache.spark.sql.catalyst.expressions.GreaterThanOrEqual;
import org.apache.spark.sql.catalyst.expressions.In;
import org.apache.spark.sql.catalyst.expressions.IsNotNull;
import org.apache.spark.sql.catalyst.expressions.IsNull;
import org.apache.spark.sql.catalyst.expressions.LessThan;
import org.apache.spark.sql.catalyst.expressions.LessThanOrEqual;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.Not;
import org.apache.spark.sql.catalyst.expressions.StartsWith;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;

/**
 * A condition that the values of partition keys answer fully, so that it is not evaluated again for each row.
 *
 * Rule: Spark's own expressions decide, on the values that rows have in these columns: types, NULL and spellings mean what
 * they mean in a filter. A condition with anything else in it than keys, and literals of their types, is no such condition.
 */
public final class KeyCondition {
    private static final Map<String, BinaryOperator<Expression>> COMPARISONS = Map.of(
        "=", EqualTo::new, "<=>", EqualNullSafe::new, "<>", (left, right) -> new Not(new EqualTo(left, right)), "<", LessThan::new,
        "<=", LessThanOrEqual::new, ">", GreaterThan::new, ">=", GreaterThanOrEqual::new, "STARTS_WITH", StartsWith::new,
        "ENDS_WITH", EndsWith::new, "CONTAINS", Contains::new);

    private final Expression meaning;

    private KeyCondition(Expression meaning) {
        this.meaning = meaning;
    }

    /** Returns the condition; null if "keys" alone cannot answer it. */
    public static KeyCondition of(Predicate condition, StructType keys) {
        Expression meaning = meaning(condition, keys);
        return meaning == null || condition.references().length == 0 ? null : new KeyCondition(meaning);
    }

    /** Returns true if rows with these keys meet the condition. */
    public boolean holds(InternalRow keys) {
        return Boolean.TRUE.equals(meaning.eval(keys));
    }

    /**
     * Returns true if rows with these keys can meet a condition that Spark found at run time. Keys that are NULL always
     * can: by such a condition Spark also finds the partitions in which an UPDATE changes rows.
     */
    public boolean mayHold(InternalRow keys) {
        return !Boolean.FALSE.equals(meaning.eval(keys));
    }

    private static Expression meaning(org.apache.spark.sql.connector.expressions.Expression part, StructType keys) {
        if (part instanceof NamedReference key) return key(key, keys);
        if (part instanceof org.apache.spark.sql.connector.expressions.Literal<?> literal) {
            return new Literal(literal.value(), literal.dataType());
        }
        if (!(part instanceof Predicate predicate)) return null;
        List<Expression> parts = new ArrayList<>();
        for (var child : predicate.children()) {
            Expression meaning = meaning(child, keys);
            if (meaning == null) return null;
            parts.add(meaning);
        }
        return meaning(predicate.name(), parts);
    }

    private static Expression key(NamedReference key, StructType keys) {
        int place = key.fieldNames().length == 1 ? Arrays.asList(keys.fieldNames()).indexOf(key.fieldNames()[0]) : -1;
        return place < 0 ? null : new BoundReference(place, keys.fields()[place].dataType(), true);
    }

    private static Expression meaning(String operator, List<Expression> parts) {
        boolean isOfBooleans = parts.stream().allMatch(part -> part.dataType() instanceof BooleanType);
        return switch (operator) {
            case "AND" -> isOfBooleans ? new org.apache.spark.sql.catalyst.expressions.And(parts.get(0), parts.get(1)) : null;
            case "OR" -> isOfBooleans ? new org.apache.spark.sql.catalyst.expressions.Or(parts.get(0), parts.get(1)) : null;
            case "NOT" -> isOfBooleans ? new Not(parts.get(0)) : null;
            case "BOOLEAN_EXPRESSION" -> isOfBooleans ? parts.get(0) : null;
            case "IS_NULL" -> new IsNull(parts.get(0));
            case "IS_NOT_NULL" -> new IsNotNull(parts.get(0));
            case "IN" -> areOfOneType(parts) ? new In(parts.get(0), PythonUtils.toSeq(parts.subList(1, parts.size()))) : null;
            default -> COMPARISONS.containsKey(operator) && areOfOneType(parts)
                ? COMPARISONS.get(operator).apply(parts.get(0), parts.get(1)) : null;
        };
    }

    private static boolean areOfOneType(List<Expression> parts) {
        DataType type = parts.get(0).dataType();
        return parts.stream().allMatch(part -> part.dataType().equals(type));
    }
}
