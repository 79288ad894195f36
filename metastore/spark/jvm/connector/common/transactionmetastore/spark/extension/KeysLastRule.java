package transactionmetastore.spark.extension;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.TableSpecBase;
import org.apache.spark.sql.catalyst.plans.logical.V2CreateTableAsSelectPlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.connector.expressions.Transform;
import scala.jdk.javaapi.CollectionConverters;
import transactionmetastore.spark.catalog.AcidCatalogBase;
import transactionmetastore.spark.catalog.AcidProvider;
import transactionmetastore.spark.catalog.Creation;

/**
 * A rule that moves the partition keys of CREATE TABLE ... PARTITIONED BY (k) AS SELECT behind the other columns.
 *
 * A table has its keys last, in the order of PARTITIONED BY, and Spark writes a query's columns by position. Such a
 * statement names its columns, in Hive and for Spark's own tables, so their order in the query is free.
 */
final class KeysLastRule extends Rule<LogicalPlan> {
    @Override
    public LogicalPlan apply(LogicalPlan plan) {
        if (!(plan instanceof V2CreateTableAsSelectPlan select) || !isOurs(plan)) return plan;
        List<Attribute> columns = CollectionConverters.asJava(select.query().output());
        List<Attribute> ordered = keysLast(columns, keys(select));
        if (ordered.equals(columns)) return plan;
        List<NamedExpression> wanted = new ArrayList<>(ordered);
        LogicalPlan reordered = new Project(CollectionConverters.asScala(wanted).toSeq(), select.query());
        for (int place = 0; place < plan.productArity(); ++place) {
            if (plan.productElement(place) == select.query()) return Nodes.with(plan, place, reordered);
        }
        throw new AssertionError("a plan without its query: " + plan.nodeName());
    }

    private static boolean isOurs(LogicalPlan plan) {
        for (int place = 0; place < plan.productArity(); ++place) {
            if (plan.productElement(place) instanceof TableSpecBase spec) return spec.provider().contains(AcidProvider.class.getName());
        }
        return false;
    }

    private static List<String> keys(V2CreateTableAsSelectPlan select) {
        List<String> keys = new ArrayList<>();
        for (Transform transform : CollectionConverters.asJava(select.partitioning())) {
            if (transform.name().equals("identity")) keys.add(Creation.name(transform.references()[0]));
        }
        return keys;
    }

    private static List<Attribute> keysLast(List<Attribute> columns, List<String> keys) {
        List<Attribute> ordered = new ArrayList<>(columns), behind = new ArrayList<>();
        for (String key : keys) columns.stream().filter(column -> AcidCatalogBase.lower(column.name()).equals(key)).forEach(behind::add);
        ordered.removeAll(behind);
        ordered.addAll(behind);
        return ordered;
    }
}
