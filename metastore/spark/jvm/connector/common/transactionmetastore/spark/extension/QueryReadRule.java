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
 * One transaction for a query that only reads, over all its tables.
 *
 * Spark applies this once to the plan of each query, also where it analyses no plan, as for a cache; then it looks for what is cached,
 * and optimizes. So scans of the same query have one snapshot, and those of different queries do not: the frame whose plan it was, which
 * other plans are made of too, goes on without.
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
            table.enter(reader);  // of changes, whose table stays in the plan
            AcidTable mark = table.pinned("another than " + table.pinned());
            marked.put(table, mark);
            read.put(mark, table.in(reader));
        }
        return with(with(plan, marked), read);  // not at once: Spark keeps a node where a rule gives it an equal one
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
