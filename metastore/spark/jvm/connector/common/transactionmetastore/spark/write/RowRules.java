package transactionmetastore.spark.write;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.BasePredicate;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Predicate$;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.functions;
import org.apache.spark.sql.types.StructField;
import scala.collection.immutable.Seq;
import transactionmetastore.spark.planner.AcidException;
import transactionmetastore.spark.table.PartitionKeys;
import transactionmetastore.spark.table.TableShape;
import transactionmetastore.spark.table.WriterFunction;

/**
 * NOT NULL and CHECK of a table: each task counts the rows that break them, and where there are any nothing is published.
 *
 * The planner names the rules once the statement holds its locks. To Spark all columns may hold NULLs: rows from before the
 * constraint may have some (NOVALIDATE), and Spark would answer IS NULL of a NOT NULL column without reading.
 * "broken": an expression of the columns "row" for each rule, true for a row that breaks it.
 */
record RowRules(List<String> labels, List<Expression> broken, Seq<Attribute> row) implements Serializable {
    static final RowRules NONE = new RowRules(List.of(), List.of(), null);

    /** From the planner's answer to "write". Throws AcidException for a rule that Spark does not understand. */
    static RowRules of(JsonNode rules, TableShape table) {
        List<String> labels = new ArrayList<>();
        List<Column> conditions = new ArrayList<>();
        for (JsonNode rule : rules) {
            labels.add(rule.path("label").asText());
            conditions.add(functions.expr(rule.path("broken").asText()));
        }
        if (labels.isEmpty()) return NONE;
        Project analysed = analysed(conditions, labels, table);
        List<Expression> broken = new ArrayList<>();
        for (var each = analysed.projectList().iterator(); each.hasNext();) {
            broken.add(((Expression) each.next()).children().head());
        }
        return new RowRules(labels, broken, analysed.child().output());
    }

    /** Optimized, which replaces expressions that Spark does not evaluate as they are. */
    private static Project analysed(List<Column> conditions, List<String> labels, TableShape table) {
        SparkSession spark = SparkSession.active();
        var nothing = JavaSparkContext.fromSparkContext(spark.sparkContext()).<Row>emptyRDD();
        try {
            var none = spark.createDataFrame(nothing, table.row()).select(Stream.of(table.row().fields()).map(RowRules::padded).toArray(Column[]::new));
            return (Project) none.select(conditions.toArray(new Column[0])).queryExecution().optimizedPlan();
        } catch (Exception error) {  // Spark throws a checked AnalysisException that no method declares
            throw new AcidException("InvalidOperationError", "Spark cannot tell whether rows keep " + String.join(", ", labels)
                + " of " + table.name() + ": " + String.valueOf(error.getMessage()).lines().findFirst().orElse("") + " Declare the "
                + "constraint anew, in Spark's SQL.", error);
        }
    }

    /** A CHAR has its blanks in a rule, also where Spark writes it without, as a default in 4.1. */
    private static Column padded(StructField field) {
        String name = WriterFunction.quoted(field.name());
        int length = PartitionKeys.blanksUpTo(field);
        return length == 0 ? functions.col(name)
            : functions.expr("rpad(" + name + ", greatest(" + length + ", length(" + name + ")), ' ')").as(field.name(), field.metadata());
    }

    Watch watch() {
        return new Watch(this);
    }

    /** Throws AcidException where tasks have counted rows that break a rule. */
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

    /** Looks at the rows of one task. */
    static final class Watch {
        private final BasePredicate[] broken;
        private final long[] counts;

        private Watch(RowRules rules) {
            broken = new BasePredicate[rules.broken.size()];
            counts = new long[broken.length];
            for (int rule = 0; rule < broken.length; ++rule) {
                broken[rule] = Predicate$.MODULE$.create(rules.broken.get(rule), rules.row);
            }
        }

        void look(InternalRow row) {
            for (int rule = 0; rule < broken.length; ++rule) if (broken[rule].eval(row)) ++counts[rule];
        }

        /** How many rows broke each rule. */
        long[] counts() {
            return counts;
        }
    }
}
