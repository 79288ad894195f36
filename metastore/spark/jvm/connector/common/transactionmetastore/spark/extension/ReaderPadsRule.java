package transactionmetastore.spark.extension;

import java.util.HashSet;
import java.util.Set;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.objects.StaticInvoke;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.types.StructType;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.AbstractPartialFunction;
import transactionmetastore.spark.catalog.AcidTable;

/**
 * A rule that removes the padding that Spark adds to CHAR columns which our reader has padded: those of full-ACID tables,
 * and partition keys. Spark gives a source no condition on a padded column, so a CHAR key would never prune partitions.
 */
final class ReaderPadsRule extends Rule<LogicalPlan> {
    private static final String PADDING = "readSidePadding";

    @Override
    public LogicalPlan apply(LogicalPlan plan) {
        Set<ExprId> padded = new HashSet<>();
        for (var leaves = plan.collectLeaves().iterator(); leaves.hasNext();) {
            if (leaves.next() instanceof DataSourceV2Relation relation && relation.table() instanceof AcidTable table) addPadded(padded, relation, table);
        }
        return padded.isEmpty() ? plan : plan.transformAllExpressions(new AbstractPartialFunction<Expression, Expression>() {
            @Override
            public boolean isDefinedAt(Expression expression) {
                return expression instanceof StaticInvoke call && call.functionName().equals(PADDING)
                    && call.arguments().head() instanceof AttributeReference column && padded.contains(column.exprId());
            }

            @Override
            public Expression apply(Expression expression) {
                return ((StaticInvoke) expression).arguments().head();
            }
        });
    }

    private static void addPadded(Set<ExprId> padded, DataSourceV2Relation relation, AcidTable table) {
        StructType columns = table.definition().isFullAcid() ? table.type() : table.definition().partitionType();
        Set<String> names = Set.of(columns.fieldNames());
        for (var column : CollectionConverters.asJava(relation.output())) if (names.contains(column.name())) padded.add(column.exprId());
    }
}
