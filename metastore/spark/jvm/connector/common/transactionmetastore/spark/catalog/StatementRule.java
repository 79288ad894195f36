package transactionmetastore.spark.catalog;

import java.util.IdentityHashMap;
import java.util.Map;
import org.apache.spark.sql.catalyst.analysis.EliminateSubqueryAliases;
import org.apache.spark.sql.catalyst.plans.logical.AppendData;
import org.apache.spark.sql.catalyst.plans.logical.DeleteFromTable;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.MergeIntoTable;
import org.apache.spark.sql.catalyst.plans.logical.UpdateTable;
import org.apache.spark.sql.catalyst.plans.logical.V2WriteCommand;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.connector.write.RowLevelOperationTable;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import scala.Function1;
import scala.runtime.AbstractPartialFunction;
import transactionmetastore.spark.planner.PlannerClient;
import transactionmetastore.spark.txn.AcidTransaction;
import transactionmetastore.spark.txn.WriteKind;

/**
 * One transaction for a statement, over all its tables: also of subqueries, views and other databases.
 *
 * Spark applies this to each plan that it analyses, the inner ones of views before that around them, so the outermost
 * decides. A frame's plan is analysed anew where another is made of it: that one has tables of its own, and what the first
 * one reads stays what it is. Where the statement writes a transactional table, all that it reads is seen by the
 * transaction that writes, which Spark has begun; where it writes one of Spark's own, Spark forgets that transaction, and
 * its tables are read in one of ours.
 */
final class StatementRule extends Rule<LogicalPlan> {
    @Override
    public LogicalPlan apply(LogicalPlan plan) {
        AcidTransaction writer = writer(plan);
        String text = plan.origin().sqlText().getOrElse(() -> "");
        Map<PlannerClient, AcidTransaction> readers = new IdentityHashMap<>();
        return plan.transformDownWithSubqueries(new AbstractPartialFunction<LogicalPlan, LogicalPlan>() {
            @Override
            public boolean isDefinedAt(LogicalPlan node) {
                return table(node) != null;
            }

            @Override
            public <N extends LogicalPlan, R> R applyOrElse(N node, Function1<N, R> otherwise) {
                AcidTable table = table(node);
                if (table == null) return otherwise.apply(node);
                AcidTransaction of = writer != null && writer.planner() == table.planner() ? writer
                    : readers.computeIfAbsent(table.planner(), planner -> AcidTransaction.reader(planner, text));
                @SuppressWarnings("unchecked")
                R bound = (R) (table.isIn(of) ? node : RoutingRule.with(node, 0, table.in(of)));
                return bound;
            }
        });
    }

    /** The transaction of the statement's write, or null. What it is going to write is noted there: locks come first. */
    private static AcidTransaction writer(LogicalPlan plan) {
        if (plan instanceof V2WriteCommand write && write.table() instanceof DataSourceV2Relation target) {
            if (target.table() instanceof AcidTable table && table.isInWriter()) {
                WriteKind kind = plan instanceof AppendData ? WriteKind.INSERT : WriteKind.INSERT_OVERWRITE;
                table.transaction().write(table.fullName(), kind, null);
                return table.transaction();
            }
            if (target.table() instanceof RowLevelOperationTable rows && rows.table() instanceof AcidTable table) {
                return table.isInWriter() ? table.transaction() : null;
            }
        }
        if (plan instanceof UpdateTable || plan instanceof DeleteFromTable || plan instanceof MergeIntoTable) {
            AcidTable table = table(EliminateSubqueryAliases.apply(plan.children().head()));
            return table != null && table.isInWriter() ? table.transaction() : null;
        }
        for (var children = plan.children().iterator(); children.hasNext();) {
            AcidTransaction found = writer(children.next());
            if (found != null) return found;
        }
        return null;
    }

    private static AcidTable table(LogicalPlan node) {
        return node instanceof DataSourceV2Relation relation && relation.table() instanceof AcidTable table ? table : null;
    }
}
