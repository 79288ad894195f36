package transactionmetastore.spark.write;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Predicate;
import java.util.stream.Stream;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.functions;
import org.apache.spark.sql.types.StructField;
import transactionmetastore.spark.internals.DeclaredTexts;
import transactionmetastore.spark.internals.RowConditions;
import transactionmetastore.spark.planner.AcidException;
import transactionmetastore.spark.table.TableShape;
import transactionmetastore.spark.table.WriterFunction;
/**
 * The rules NOT NULL and CHECK of a table. Each task counts the rows that break them; if there are any, nothing is
 * published.
 *
 * The planner names the rules once the statement holds its locks. To Spark all columns may hold NULLs: rows from before the
 * constraint may have some (NOVALIDATE), and Spark would answer IS NULL of a NOT NULL column without reading. "broken": a
 * condition for each rule, true for a row that breaks it.
 */
record RowRules(List<String> labels, RowConditions broken) implements Serializable {
    static final RowRules NONE = new RowRules(List.of(), RowConditions.NONE);

    /** Returns the rules in the planner's answer to "write". Throws AcidException for a rule that Spark does not understand. */
    static RowRules of(JsonNode rules, TableShape table) {
        List<String> labels = new ArrayList<>();
        List<Column> conditions = new ArrayList<>();
        for (JsonNode rule : rules) {
            labels.add(rule.path("label").asText());
            conditions.add(functions.expr(rule.path("broken").asText()));
        }
        if (labels.isEmpty()) return NONE;
        Column[] columns = Stream.of(table.row().fields()).map(RowRules::padded).toArray(Column[]::new);
        try {
            return new RowRules(labels, RowConditions.of(table.row(), columns, conditions.toArray(new Column[0])));
        } catch (Exception error) {  // Spark throws a checked AnalysisException that no method declares
            throw new AcidException("InvalidOperationError", "Spark cannot tell whether rows keep " + String.join(", ", labels)
                + " of " + table.name() + ": " + String.valueOf(error.getMessage()).lines().findFirst().orElse("") + " Declare the "
                + "constraint anew, in Spark's SQL.", error);
        }
    }

    /** Returns the column, padded with blanks to the length of its CHAR type: Spark 4.1 leaves them out of DEFAULT values. */
    private static Column padded(StructField field) {
        String name = WriterFunction.quoted(field.name());
        int length = DeclaredTexts.blanksUpTo(field);
        return length == 0 ? functions.col(name)
            : functions.expr("rpad(" + name + ", greatest(" + length + ", length(" + name + ")), ' ')").as(field.name(), field.metadata());
    }

    Watch watch() {
        return new Watch(this);
    }

    /** Throws AcidException if tasks have counted rows that break a rule. */
    void require(String table, Iterable<long[]> counted) {
        List<String> violations = new ArrayList<>();
        for (int rule = 0; rule < labels.size(); ++rule) {
            long count = 0;
            for (long[] counts : counted) count += counts[rule];
            if (count > 0) violations.add(labels.get(rule) + " by " + count + (count == 1 ? " row" : " rows"));
        }
        if (violations.isEmpty()) return;
        throw new AcidException("ConstraintViolationError", table + ": nothing was written, because rows break "
            + String.join("; ", violations) + ".");
    }

    /** A counter for the rows of one task. */
    static final class Watch {
        private final List<Predicate<InternalRow>> broken;
        private final long[] counts;

        private Watch(RowRules rules) {
            broken = rules.broken.evaluators();
            counts = new long[broken.size()];
        }

        void look(InternalRow row) {
            for (int rule = 0; rule < counts.length; ++rule) if (broken.get(rule).test(row)) ++counts[rule];
        }

        /** Returns for each rule the number of rows that broke it. */
        long[] counts() {
            return counts;
        }
    }
}
