package transactionmetastore.spark.extension;

import java.util.List;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.objects.AssertNotNull;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.WriteDelta;
import org.apache.spark.sql.connector.write.RowLevelOperation.Command;
import org.apache.spark.sql.connector.write.RowLevelOperationTable;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import scala.runtime.AbstractFunction1;
import scala.runtime.BoxedUnit;
import transactionmetastore.spark.table.TableShape;
import transactionmetastore.spark.write.RowChanges;

/**
 * A check that refuses an UPDATE of a column by which rows are placed, as Hive does: the row would have to move.
 *
 * MERGE often assigns such a column the value that it has (UPDATE SET *), so there TaskWriter looks at each row.
 */
public final class AssignedColumns extends AbstractFunction1<LogicalPlan, BoxedUnit> {
    @Override
    public BoxedUnit apply(LogicalPlan plan) {
        if (plan instanceof WriteDelta write && write.table() instanceof DataSourceV2Relation relation
                && relation.table() instanceof RowLevelOperationTable table && table.operation() instanceof RowChanges changes
                && changes.command() == Command.UPDATE && write.query() instanceof Project project) {
            for (var values = project.projectList().iterator(); values.hasNext();) require(values.next(), changes.shape());
        }
        return BoxedUnit.UNIT;
    }

    private static void require(NamedExpression value, TableShape table) {
        if (isKept(value)) return;
        if (List.of(table.keys().fieldNames()).contains(value.name())) throw RowChanges.partitionColumn(table, value.name());
        if (table.buckets().columns().contains(value.name())) throw RowChanges.bucketingColumns(table, List.of(value.name()));
    }

    /** Returns true if a column keeps its value. */
    private static boolean isKept(NamedExpression value) {
        Expression from = value instanceof Alias alias ? alias.child() : (Expression) value;
        while (from instanceof AssertNotNull checked) from = checked.child();
        return from instanceof AttributeReference column && column.name().equals(value.name());
    }
}
