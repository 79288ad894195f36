package transactionmetastore.spark.extension;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.plans.logical.DeleteFromTable;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.util.CharVarcharUtils;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.types.Metadata;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;
import transactionmetastore.spark.catalog.AcidTable;

/**
 * A rule that gives Spark 4.0 the target of a DELETE as a table. Spark pads its CHAR columns, and then no longer recognizes
 * a table. Our reader pads them instead.
 */
final class TextTargetsRule extends Rule<LogicalPlan> {
    @Override
    public LogicalPlan apply(LogicalPlan plan) {
        if (!(plan instanceof DeleteFromTable)) return plan;
        LogicalPlan target = plan.children().head(), bare = bare(target);
        if (bare == target) return plan;
        List<LogicalPlan> children = new ArrayList<>(CollectionConverters.asJava(plan.children()));
        children.set(0, bare);
        return plan.withNewChildren(seq(children));
    }

    private static LogicalPlan bare(LogicalPlan target) {
        if (target instanceof SubqueryAlias named) {
            LogicalPlan child = bare(named.child());
            return child == named.child() ? named : named.withNewChildren(seq(List.of(child)));
        }
        if (target instanceof Project padding && padding.child() instanceof DataSourceV2Relation relation) return bare(relation, padding.projectList());
        return target;
    }

    /** Returns the relation with columns of these ids, and no metadata besides their types. */
    private static LogicalPlan bare(DataSourceV2Relation relation, Seq<? extends NamedExpression> columns) {
        if (!(relation.table() instanceof AcidTable)) return relation;
        List<Attribute> output = new ArrayList<>();
        for (NamedExpression column : CollectionConverters.asJava(columns)) {
            output.add(column instanceof Alias padded ? new AttributeReference(
                padded.name(), padded.dataType(), padded.nullable(), Metadata.empty(), padded.exprId(), padded.qualifier())
                : CharVarcharUtils.cleanAttrMetadata((AttributeReference) column));
        }
        Seq<Attribute> bare = seq(output);
        return bare.equals(relation.output()) ? relation : Nodes.with(relation, Nodes.place(relation, "output"), bare);
    }

    private static <T> Seq<T> seq(List<T> list) {
        return CollectionConverters.asScala(list).toSeq();
    }
}
