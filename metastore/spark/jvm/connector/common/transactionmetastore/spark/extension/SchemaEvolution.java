package transactionmetastore.spark.extension;

import org.apache.spark.sql.catalyst.analysis.EliminateSubqueryAliases;
import org.apache.spark.sql.catalyst.analysis.UnresolvedRelation;
import org.apache.spark.sql.catalyst.plans.logical.InsertIntoStatement;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.MergeIntoTable;
import transactionmetastore.spark.catalog.AcidTable;
import transactionmetastore.spark.catalog.EvolvingTable;
import transactionmetastore.spark.planner.AcidException;

/** A check that refuses WITH SCHEMA EVOLUTION where Spark would ignore new columns, or write values into the wrong columns. */
record SchemaEvolution(CatalogNames names) {
    /**
     * Refuses the statement in Spark 4.0, which ignores new columns, and a new column before the partition keys: Spark
     * finds columns by their old positions.
     */
    void require(LogicalPlan plan) {
        if (!isWanted(plan)) return;
        LogicalPlan target = plan instanceof InsertIntoStatement insert ? insert.table() : plan.children().head();
        CatalogNames.Found found = EliminateSubqueryAliases.apply(target) instanceof UnresolvedRelation relation
            ? names.found(relation.multipartIdentifier()) : null;
        if (found == null) return;
        AcidTable changed = found.table();
        if (EvolvingTable.EVOLVING.isEmpty()) {
            throw new AcidException("UNSUPPORTED", "WITH SCHEMA EVOLUTION of " + changed.fullName() + " needs Spark 4.1 or newer: "
                + "ALTER TABLE " + changed.fullName() + " ADD COLUMNS first, and leave out these words.");
        }
        if (plan instanceof MergeIntoTable && changed.partitioning().length > 0) {
            throw new AcidException("UNSUPPORTED", changed.fullName() + " has partition keys, and Spark takes them for the columns that it adds: "
                + "ALTER TABLE " + changed.fullName() + " ADD COLUMNS first, and MERGE without WITH SCHEMA EVOLUTION.");
        }
        if (plan instanceof InsertIntoStatement insert && !insert.byName() && changed.partitioning().length > 0) {
            throw new AcidException("UNSUPPORTED", changed.fullName() + " has partition keys, which are its last columns, so new columns "
                + "would move them: INSERT WITH SCHEMA EVOLUTION INTO " + changed.fullName() + " BY NAME.");
        }
    }

    /** Returns true if the plan has the words WITH SCHEMA EVOLUTION. INSERT has them from Spark 4.2 on. */
    private static boolean isWanted(LogicalPlan plan) {
        if (!(plan instanceof MergeIntoTable) && !(plan instanceof InsertIntoStatement)) return false;
        int place = Nodes.place(plan, "withSchemaEvolution");
        return place >= 0 && Boolean.TRUE.equals(plan.productElement(place));
    }
}
