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
 * What replaces rows by a condition: INSERT INTO ... REPLACE WHERE, and overwrite(condition) of a DataFrame.
 *
 * Once Spark has resolved the names its plan is that of an INSERT OVERWRITE, which replaces other partitions: those that get rows. So
 * these get an option before, which goes with the write.
 */
final class ReplaceWhere {
    private ReplaceWhere() {}

    /** The table of such a statement; null of any other plan. */
    static UnresolvedRelation target(LogicalPlan plan) {
        Object table = plan instanceof OverwriteByExpression write ? write.table()
            : plan instanceof InsertIntoStatement insert && hasCondition(insert) ? insert.table() : null;
        return table instanceof UnresolvedRelation target ? target : null;
    }

    /** An INSERT has it from Spark 4.3 on. */
    private static boolean hasCondition(InsertIntoStatement insert) {
        int place = RoutingRule.place(insert, "replaceCriteriaOpt");
        return place >= 0 && ((Option<?>) insert.productElement(place)).isDefined();
    }

    /** The statement with the option. Spark wants the options of the write and of the table to be the same, or one of both to be empty. */
    static LogicalPlan marked(LogicalPlan plan) {
        UnresolvedRelation target = target(plan);
        boolean isOfTable = plan instanceof InsertIntoStatement || !target.clearWritePrivileges().options().isEmpty();
        LogicalPlan marked = isOfTable ? with(plan, "table", marked(target)) : plan;
        if (!(marked instanceof OverwriteByExpression write) || isOfTable && write.writeOptions().isEmpty()) return marked;
        Map<String, String> options = new HashMap<>(CollectionConverters.asJava(write.writeOptions()));
        return options.put(AcidWriteBuilder.BY_CONDITION, "") != null ? marked : with(write, "writeOptions", PythonUtils.toScalaMap(options));
    }

    private static UnresolvedRelation marked(UnresolvedRelation target) {
        Map<String, String> options = new HashMap<>(target.options().asCaseSensitiveMap());
        if (options.put(AcidWriteBuilder.BY_CONDITION, "") != null) return target;
        return (UnresolvedRelation) with(target, "options", new CaseInsensitiveStringMap(options));
    }

    private static LogicalPlan with(LogicalPlan node, String name, Object part) {
        int place = RoutingRule.place(node, name);
        return node.productElement(place) == part ? node : (LogicalPlan) RoutingRule.with(node, place, part);
    }
}
