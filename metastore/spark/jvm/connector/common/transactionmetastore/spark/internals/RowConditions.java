package transactionmetastore.spark.internals;

import java.io.Serializable;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Predicate;
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
import org.apache.spark.sql.types.StructType;
import scala.collection.immutable.Seq;

/** SQL conditions that tasks evaluate on rows. "conditions": analysed; "row": the columns of the rows. */
public record RowConditions(List<Expression> conditions, Seq<Attribute> row) implements Serializable {
    public static final RowConditions NONE = new RowConditions(List.of(), null);

    /**
     * Analyses conditions on "columns" of rows of a type, and optimizes them, which replaces expressions that Spark cannot
     * evaluate directly. Throws Spark's exception for a condition that it does not understand: a checked exception that no
     * method declares.
     */
    public static RowConditions of(StructType type, Column[] columns, Column[] conditions) {
        SparkSession spark = SparkSession.active();
        var nothing = JavaSparkContext.fromSparkContext(spark.sparkContext()).<Row>emptyRDD();
        Project analysed = (Project) spark.createDataFrame(nothing, type).select(columns).select(conditions).queryExecution().optimizedPlan();
        List<Expression> all = new ArrayList<>();
        for (var each = analysed.projectList().iterator(); each.hasNext();) {
            all.add(((Expression) each.next()).children().head());
        }
        return new RowConditions(all, analysed.child().output());
    }

    /** Returns an evaluator for each condition; they are not for several threads. */
    public List<Predicate<InternalRow>> evaluators() {
        List<Predicate<InternalRow>> evaluators = new ArrayList<>();
        for (Expression condition : conditions) {
            BasePredicate compiled = Predicate$.MODULE$.create(condition, row);
            evaluators.add(compiled::eval);
        }
        return evaluators;
    }
}
