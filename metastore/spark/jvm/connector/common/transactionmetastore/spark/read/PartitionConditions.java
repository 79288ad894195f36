package transactionmetastore.spark.read;

import java.time.LocalDate;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.Literal;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.filter.And;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.IntegralType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.StructType;

/**
 * Conditions on partition keys in the planner's form: [key, operator, values as texts]. Conditions without such a form are
 * left out.
 */
final class PartitionConditions {
    private static final Map<String, String> OPERATORS =
        Map.of("=", "=", "<", "<", "<=", "<=", ">", ">", ">=", ">=", "IN", "in", "IS_NULL", "is null");

    private PartitionConditions() {}

    /** Returns true if a condition refers only to keys. */
    static boolean isOfKeys(Predicate predicate, StructType keys) {
        NamedReference[] references = predicate.references();
        List<String> names = Arrays.asList(keys.fieldNames());
        return references.length > 0 && Arrays.stream(references)
            .allMatch(reference -> reference.fieldNames().length == 1 && names.contains(reference.fieldNames()[0]));
    }

    static List<List<String>> of(List<Predicate> predicates, StructType keys) {
        List<List<String>> conditions = new ArrayList<>();
        for (Predicate predicate : parts(predicates)) {
            List<String> condition = condition(predicate, keys);
            if (condition != null) conditions.add(condition);
        }
        return conditions;
    }

    /** Returns true if every condition has the planner's form. Those that Spark adds, IS NOT NULL of a key, do not matter. */
    static boolean areKnown(List<Predicate> predicates, StructType keys) {
        return parts(predicates).stream().allMatch(part -> part.name().equals("IS_NOT_NULL") || condition(part, keys) != null);
    }

    private static List<Predicate> parts(List<Predicate> predicates) {
        List<Predicate> parts = new ArrayList<>();
        for (Predicate predicate : predicates) {
            if (predicate instanceof And both) parts.addAll(parts(List.of(both.left(), both.right())));
            else parts.add(predicate);
        }
        return parts;
    }

    private static List<String> condition(Predicate predicate, StructType keys) {
        String operator = OPERATORS.get(predicate.name());
        Expression[] parts = predicate.children();
        if (operator == null || !(parts[0] instanceof NamedReference key) || key.fieldNames().length != 1) return null;
        DataType type = keys.apply(key.fieldNames()[0]).dataType();
        List<String> condition = new ArrayList<>(List.of(key.fieldNames()[0], operator));
        for (int part = 1; part < parts.length; ++part) {
            String text = parts[part] instanceof Literal<?> literal && literal.dataType().equals(type) ? text(literal) : null;
            if (text == null) return null;
            condition.add(text);
        }
        return condition;
    }

    /** Returns the text of a value in a partition's name; null for a type that has several texts. */
    private static String text(Literal<?> literal) {
        Object value = literal.value();
        DataType type = literal.dataType();
        if (value == null) return null;
        if (type instanceof StringType || type instanceof IntegralType || type instanceof BooleanType) return value.toString();
        if (type instanceof DateType && value instanceof Integer days) return LocalDate.ofEpochDay(days).toString();
        return value instanceof Decimal decimal ? decimal.toJavaBigDecimal().toPlainString() : null;
    }
}
