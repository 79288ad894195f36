package transactionmetastore.spark.extension;

import java.util.Collections;
import java.util.IdentityHashMap;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.catalyst.analysis.EliminateSubqueryAliases;
import org.apache.spark.sql.catalyst.plans.logical.AppendData;
import org.apache.spark.sql.catalyst.plans.logical.DeleteFromTable;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.MergeIntoTable;
import org.apache.spark.sql.catalyst.plans.logical.OverwriteByExpression;
import org.apache.spark.sql.catalyst.plans.logical.OverwritePartitionsDynamic;
import org.apache.spark.sql.catalyst.plans.logical.UpdateTable;
import org.apache.spark.sql.catalyst.plans.logical.V2WriteCommand;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNodeTag;
import org.apache.spark.sql.connector.write.RowLevelOperationTable;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import transactionmetastore.spark.catalog.AcidTable;
import transactionmetastore.spark.planner.PlannerClient;
import transactionmetastore.spark.txn.AcidTransaction;
import transactionmetastore.spark.txn.WriteKind;
import transactionmetastore.spark.write.AcidWrites;

/**
 * A rule that gives a statement one transaction over all its tables: also those of subqueries, views and other databases.
 *
 * Spark applies it to each plan that it analyses, and to a view's plan before the plan around the view. All tables of a
 * plan enter the same transaction; inside a block of statements, this is the block's. If the statement writes a
 * transactional table, all its tables are read in the writing transaction: from Spark 4.2 on Spark begins it, in older
 * versions the written table does. If the statement writes only a table of Spark's own, Spark ends the transaction that it
 * has begun, and this rule gives the tables one that only reads.
 *
 * The rule changes tables in place and returns the same plan, because all plans that are made of a frame share its table
 * objects. A plan that only reads gets a transaction for each run: see QueryReadRule.
 */
final class StatementRule extends Rule<LogicalPlan> {
    private static final TreeNodeTag<Boolean> IS_OF_NEW_ROWS_ALONE = new TreeNodeTag<>("acid.merge.of.new.rows.alone");

    /**
     * Marks a MERGE that only adds rows: in 4.1 Spark has made an INSERT of it when this rule sees the plan, and the mark
     * stays.
     */
    static void tag(MergeIntoTable merge) {
        if (isOfNewRowsAlone(merge)) merge.setTagValue(IS_OF_NEW_ROWS_ALONE, true);
    }

    @Override
    public LogicalPlan apply(LogicalPlan plan) {
        Set<AcidTable> tables = tables(plan);
        if (tables.isEmpty()) return plan;
        AcidTransaction writer = writer(plan);
        String text = plan.origin().sqlText().getOrElse(() -> "");
        Map<PlannerClient, AcidTransaction> readers = new IdentityHashMap<>();
        for (AcidTable table : tables) if (table.block() != null) readers.put(table.planner(), table.block().reading());
        for (AcidTable table : tables) {
            boolean isOfWriter = writer != null && writer.planner() == table.planner() && mayRead(writer, table);
            table.enter(isOfWriter ? writer
                : readers.computeIfAbsent(table.planner(), planner -> AcidTransaction.reader(planner, text)));
        }
        return plan;
    }

    /** Returns true if the writer may read the table. A table in another catalog's block is read in that block. */
    private static boolean mayRead(AcidTransaction writer, AcidTable table) {
        return table.block() == null || writer.isOf(table.block());
    }

    /** Returns all our tables in a plan, at its own nodes. */
    static Set<AcidTable> tables(LogicalPlan plan) {
        Set<AcidTable> tables = Collections.newSetFromMap(new IdentityHashMap<>());
        collect(plan, tables);
        for (var inner = plan.subqueriesAll().iterator(); inner.hasNext();) collect(inner.next(), tables);
        return tables;
    }

    private static void collect(LogicalPlan plan, Set<AcidTable> tables) {
        AcidTable table = table(plan);
        if (table != null) tables.add(table);
        if (plan instanceof V2WriteCommand write && write.table() instanceof LogicalPlan target) collect(target, tables);
        for (var children = plan.children().iterator(); children.hasNext();) collect(children.next(), tables);
    }

    /** Returns the transaction of the statement's write, or null. The write is noted in it at once, since locks come first. */
    private static AcidTransaction writer(LogicalPlan plan) {
        if (plan instanceof V2WriteCommand write && write.table() instanceof DataSourceV2Relation target) {
            if (target.table() instanceof AcidTable table && table.writer() != null) {
                if (kind(plan) == WriteKind.MERGE_INSERT) AcidWrites.requireRowIds(table, "MERGE");
                table.transaction().write(table.fullName(), kind(plan), null);
                return table.transaction();
            }
            if (target.table() instanceof RowLevelOperationTable rows && rows.table() instanceof AcidTable table) {
                return table.writer();
            }
        }
        if (plan instanceof UpdateTable || plan instanceof DeleteFromTable || plan instanceof MergeIntoTable) {
            AcidTable table = table(EliminateSubqueryAliases.apply(plan.children().head()));
            if (table != null) AcidWrites.requireRowIds(table, command(plan));
            AcidTransaction writer = table == null ? null : table.writer();
            if (writer != null && plan instanceof MergeIntoTable merge && isOfNewRowsAlone(merge)) {
                writer.write(table.fullName(), WriteKind.MERGE_INSERT, null);
            }
            return writer;
        }
        for (var children = plan.children().iterator(); children.hasNext();) {
            AcidTransaction writer = writer(children.next());
            if (writer != null) return writer;
        }
        return null;
    }

    private static String command(LogicalPlan plan) {
        return plan instanceof UpdateTable ? "UPDATE" : plan instanceof DeleteFromTable ? "DELETE" : "MERGE";
    }

    /** Returns true if a MERGE only adds rows: Spark makes it an append, and no row-level operation. */
    static boolean isOfNewRowsAlone(MergeIntoTable merge) {
        return merge.matchedActions().isEmpty() && merge.notMatchedBySourceActions().isEmpty();
    }

    /** Returns the kind of a write. From Spark 4.2 on, a MERGE that changes no rows is an insert too. */
    private static WriteKind kind(LogicalPlan write) {
        if (write.getTagValue(IS_OF_NEW_ROWS_ALONE).isDefined()) return WriteKind.MERGE_INSERT;
        if (write instanceof AppendData) return WriteKind.INSERT;
        boolean isOverwriting = write instanceof OverwriteByExpression || write instanceof OverwritePartitionsDynamic;
        return isOverwriting ? WriteKind.INSERT_OVERWRITE : WriteKind.MERGE_INSERT;
    }

    /** Returns our table that a node reads; null for other nodes. */
    static AcidTable table(LogicalPlan node) {
        if (!(node instanceof DataSourceV2Relation relation)) return null;
        if (relation.table() instanceof RowLevelOperationTable rows && rows.table() instanceof AcidTable table) return table;
        return relation.table() instanceof AcidTable table ? table : ChangedTable.of(relation.table());
    }
}
