package transactionmetastore.spark.extension;

import java.util.IdentityHashMap;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import transactionmetastore.spark.catalog.AcidTable;
import transactionmetastore.spark.planner.PlannerClient;
import transactionmetastore.spark.txn.AcidTransaction;

/**
 * A rule that gives each query that only reads a single transaction over all its tables.
 *
 * Spark applies the rule once to the plan of each query, even where it analyses no plan, as for a cache; afterwards it
 * looks for cached plans, and optimizes. So the scans of one query have the same snapshot, and different queries have
 * different ones. The frame that owns the plan is not changed, since other plans use its nodes too.
 */
final class QueryReadRule extends Rule<LogicalPlan> {
    @Override
    public LogicalPlan apply(LogicalPlan plan) {
        Set<AcidTable> tables = StatementRule.tables(plan);
        tables.removeIf(table -> !table.isReadByQueries());
        if (tables.isEmpty()) return plan;
        String text = plan.origin().sqlText().getOrElse(() -> "");
        Map<PlannerClient, AcidTransaction> readers = new IdentityHashMap<>();
        Map<AcidTable, AcidTable> marked = new IdentityHashMap<>(), read = new IdentityHashMap<>();
        for (AcidTable table : tables) {
            AcidTransaction reader = readers.computeIfAbsent(table.planner(), planner -> AcidTransaction.reader(planner, text));
            table.enter(reader);  // a plan of changes keeps its table
            AcidTable mark = table.pinned("another than " + table.pinned());
            marked.put(table, mark);
            read.put(mark, table.in(reader));
        }
        return with(with(plan, marked), read);  // two steps: Spark drops an equal node
    }

    private static LogicalPlan with(LogicalPlan plan, Map<AcidTable, AcidTable> others) {
        return plan.transformWithSubqueries(new Frames.EachNode() {
            @Override
            LogicalPlan of(LogicalPlan node) {
                if (!(node instanceof DataSourceV2Relation relation) || !others.containsKey(relation.table())) return node;
                return Nodes.with(relation, Nodes.place(relation, "table"), others.get(relation.table()));
            }
        });
    }
}
