package transactionmetastore.spark.extension;

import java.util.HashMap;
import java.util.Map;
import org.apache.spark.api.python.PythonUtils;
import org.apache.spark.sql.catalyst.analysis.UnresolvedRelation;
import org.apache.spark.sql.catalyst.plans.logical.InsertIntoStatement;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.OverwriteByExpression;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import scala.Option;
import scala.jdk.javaapi.CollectionConverters;
import transactionmetastore.spark.write.AcidWriteBuilder;

/**
 * The rule for statements that replace rows by a condition: INSERT INTO ... REPLACE WHERE, and overwrite(condition) of a
 * DataFrame.
 *
 * When Spark has resolved the names, the plan looks like an INSERT OVERWRITE, which replaces the partitions that get rows.
 * So the rule first adds an option that stays with the write.
 */
record ReplaceWhere(CatalogNames names) {
    /** Adds the option to such a statement, if its table is in one of our catalogs. */
    LogicalPlan marked(LogicalPlan plan) {
        UnresolvedRelation target = target(plan);
        return target == null || names.named(target.multipartIdentifier()) == null ? plan : withOption(plan, target);
    }

    /** Returns the table of such a statement; null for any other plan. */
    private static UnresolvedRelation target(LogicalPlan plan) {
        Object table = plan instanceof OverwriteByExpression write ? write.table()
            : plan instanceof InsertIntoStatement insert && hasCondition(insert) ? insert.table() : null;
        return table instanceof UnresolvedRelation target ? target : null;
    }

    /** Returns true if an INSERT has a condition, as it can from Spark 4.3 on. */
    private static boolean hasCondition(InsertIntoStatement insert) {
        int place = Nodes.place(insert, "replaceCriteriaOpt");
        return place >= 0 && ((Option<?>) insert.productElement(place)).isDefined();
    }

    /** Adds the option to the table and to the write: Spark requires equal options, or none on one side. */
    private static LogicalPlan withOption(LogicalPlan plan, UnresolvedRelation target) {
        boolean isOfTable = plan instanceof InsertIntoStatement || !target.clearWritePrivileges().options().isEmpty();
        LogicalPlan marked = isOfTable ? with(plan, "table", withOption(target)) : plan;
        if (!(marked instanceof OverwriteByExpression write) || isOfTable && write.writeOptions().isEmpty()) return marked;
        Map<String, String> options = new HashMap<>(CollectionConverters.asJava(write.writeOptions()));
        return options.put(AcidWriteBuilder.BY_CONDITION, "") != null ? marked : with(write, "writeOptions", PythonUtils.toScalaMap(options));
    }

    private static UnresolvedRelation withOption(UnresolvedRelation target) {
        Map<String, String> options = new HashMap<>(target.options().asCaseSensitiveMap());
        if (options.put(AcidWriteBuilder.BY_CONDITION, "") != null) return target;
        return with(target, "options", new CaseInsensitiveStringMap(options));
    }

    private static <N extends LogicalPlan> N with(N node, String name, Object part) {
        int place = Nodes.place(node, name);
        return node.productElement(place) == part ? node : Nodes.with(node, place, part);
    }
}
