package transactionmetastore.spark.extension;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.analysis.UnresolvedAttribute;
import org.apache.spark.sql.catalyst.analysis.UnresolvedRelation;
import org.apache.spark.sql.catalyst.plans.logical.Assignment;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.MergeIntoTable;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias;
import org.apache.spark.sql.catalyst.plans.logical.UpdateAction;
import org.apache.spark.sql.catalyst.plans.logical.UpdateTable;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;
import transactionmetastore.spark.planner.AcidException;
import transactionmetastore.spark.table.RowId;

/**
 * A check of the columns that an UPDATE or MERGE assigns, by their names in the text. Spark would resolve a hidden column
 * and then drop its assignment without an error, so this check comes first.
 */
record AssignedNames(CatalogNames names) {
    /** Refuses to assign a hidden column of a transactional table. */
    void requireNoneHidden(LogicalPlan plan) {
        String column = target(plan) == null ? null : hidden(plan);
        CatalogNames.Found changed = column == null ? null : names.found(target(plan).multipartIdentifier());
        if (changed == null) return;
        throw new AcidException("InvalidOperationError", "Hidden column " + column + " of " + changed.table().fullName()
            + " cannot be updated: it is where the row was written. Leave it out of SET, and use it in WHERE.");
    }

    /** Returns the table that is changed, by its name in the text; null where the plan changes none. */
    static UnresolvedRelation target(LogicalPlan plan) {
        if (!(plan instanceof UpdateTable) && !(plan instanceof MergeIntoTable)) return null;
        LogicalPlan target = plan.children().head();
        if (target instanceof SubqueryAlias alias) target = alias.child();
        return target instanceof UnresolvedRelation relation ? relation : null;
    }

    /** Returns the first hidden column, or field of it, that is assigned; null where there is none. */
    private static String hidden(LogicalPlan plan) {
        List<String> qualifiers = new ArrayList<>(CollectionConverters.asJava(target(plan).multipartIdentifier()));
        if (plan.children().head() instanceof SubqueryAlias alias) qualifiers.add(alias.alias());
        for (Assignment assignment : assignments(plan)) {
            if (!(assignment.key() instanceof UnresolvedAttribute column)) continue;
            for (String part : CollectionConverters.asJava(column.nameParts())) {
                if (RowId.named(part) != null) return column.name();
                if (qualifiers.stream().noneMatch(part::equalsIgnoreCase)) break;
            }
        }
        return null;
    }

    private static List<Assignment> assignments(LogicalPlan plan) {
        List<Assignment> all = new ArrayList<>();
        if (plan instanceof UpdateTable update) addAll(all, update.assignments());
        if (plan instanceof MergeIntoTable merge) {
            for (var actions : List.of(merge.matchedActions(), merge.notMatchedBySourceActions())) {
                for (var action : CollectionConverters.asJava(actions)) {
                    if (action instanceof UpdateAction update) addAll(all, update.assignments());
                }
            }
        }
        return all;
    }

    private static void addAll(List<Assignment> all, Seq<Assignment> more) {
        all.addAll(CollectionConverters.asJava(more));
    }
}
