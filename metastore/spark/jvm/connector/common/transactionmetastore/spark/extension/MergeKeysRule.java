package transactionmetastore.spark.extension;

import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.BloomFilterMightContain;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.ScalarSubquery;
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression;
import org.apache.spark.sql.catalyst.expressions.XxHash64;
import org.apache.spark.sql.catalyst.expressions.aggregate.BloomFilterAggregate;
import org.apache.spark.sql.catalyst.planning.ExtractEquiJoinKeys;
import org.apache.spark.sql.catalyst.plans.Inner$;
import org.apache.spark.sql.catalyst.plans.RightOuter$;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LeafNode;
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.OneRowRelation;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.Range;
import org.apache.spark.sql.catalyst.plans.logical.Union;
import org.apache.spark.sql.catalyst.plans.logical.WriteDelta;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.connector.write.RowLevelOperationTable;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.InMemoryFileIndex;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.BinaryType$;
import org.apache.spark.sql.types.BooleanType$;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DateType$;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.IntegralType;
import org.apache.spark.sql.types.StringType$;
import org.apache.spark.sql.types.TimestampNTZType$;
import org.apache.spark.sql.types.TimestampType$;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;
import transactionmetastore.spark.catalog.AcidTable;

/**
 * A MERGE takes of its target only rows whose keys its source may have: it asks a Bloom filter of the source's keys.
 *
 * A MERGE that may add rows is an outer join that keeps the source whole. Spark can send only the other side of such a join to all
 * tasks, so it shuffles and sorts all rows of the target, with all of their columns, to change a few.
 *
 * The source is read twice, and must say the same both times: else a row that the target has would be added again. So it is made of
 * rows in the plan, files that are listed once, and ACID tables in the statement's snapshot, and its keys depend on no order of rows.
 * (Spark itself refuses a source by chance.)
 */
final class MergeKeysRule extends Rule<LogicalPlan> {
    private static final Set<Class<?>> IN_ANY_ORDER = Set.of(Project.class, Filter.class, Join.class, Union.class);
    private static final Set<DataType> EQUAL_AS_BYTES = Set.of(
        BooleanType$.MODULE$, DateType$.MODULE$, TimestampType$.MODULE$, TimestampNTZType$.MODULE$, StringType$.MODULE$, BinaryType$.MODULE$);

    private final org.apache.spark.sql.classic.SparkSession spark;

    MergeKeysRule(SparkSession spark) {
        this.spark = (org.apache.spark.sql.classic.SparkSession) spark;
    }

    @Override
    public LogicalPlan apply(LogicalPlan plan) {
        boolean isWanted = plan instanceof WriteDelta write && isLarge(write) && SQLConf.get().runtimeFilterBloomFilterEnabled();
        return isWanted ? filtered(plan) : plan;
    }

    /** Or nobody knows. A small one is merged sooner than its source is read. */
    private static boolean isLarge(WriteDelta write) {
        if (!(write.table() instanceof DataSourceV2Relation target) || !(target.table() instanceof RowLevelOperationTable rows)
            || !(rows.table() instanceof AcidTable table)) return false;
        Long bytes = table.definition().bytes();
        return bytes == null || bytes > SQLConf.get().autoBroadcastJoinThreshold();
    }

    private LogicalPlan filtered(LogicalPlan node) {
        if (node instanceof Join join) {
            Filter target = mayBeInSource(join);
            return target == null ? join : with(join, target, join.right());
        }
        return node.children().size() == 1 ? with(node, filtered(node.children().head())) : node;
    }

    /** The target's rows that the join may find, or null: all. */
    private Filter mayBeInSource(Join join) {
        boolean wantsNoOthers = join.joinType() == RightOuter$.MODULE$ || join.joinType() == Inner$.MODULE$;
        var keys = wantsNoOthers && isStable(join.right()) ? ExtractEquiJoinKeys.unapply(join) : null;
        if (keys == null || keys.isEmpty()) return null;
        List<Expression> targets = new ArrayList<>(), sources = new ArrayList<>();
        for (int place = 0; place < keys.get()._2().size(); ++place) {
            Expression target = keys.get()._2().apply(place), source = keys.get()._3().apply(place);
            if (!isEqualAsBytes(target.dataType()) || !target.dataType().equals(source.dataType())) continue;
            targets.add(target);
            sources.add(source);
        }
        if (targets.isEmpty()) return null;
        Expression known = new BloomFilterAggregate(hash(sources)).toAggregateExpression();
        NamedExpression named = new Alias(
            known, "keys", NamedExpression.newExprId(), seq(List.of()), scala.Option.empty(), seq(List.of()));
        LogicalPlan read = spark.sessionState().optimizer().execute(
            new Aggregate(seq(List.of()), seq(List.of(named)), join.right(), scala.Option.empty()));
        if (!isInAnyOrder(read.children().head())) return null;
        Expression filter = new ScalarSubquery(
            read, seq(List.of()), NamedExpression.newExprId(), seq(List.of()), scala.Option.empty(), scala.Option.empty(),
            scala.Option.empty());
        return new Filter(new BloomFilterMightContain(filter, hash(targets)), join.left());
    }

    /** Whether all that the rows come from is the same each time that it is read. Files of a catalog's table are listed each time. */
    private static boolean isStable(LogicalPlan node) {
        if (node.expressions().exists(SubqueryExpression::hasSubquery)) return false;
        for (var children = node.children().iterator(); children.hasNext();) if (!isStable(children.next())) return false;
        return !(node instanceof LeafNode) || node instanceof LocalRelation || node instanceof OneRowRelation || node instanceof Range
            || node instanceof LogicalRelation files && files.relation() instanceof HadoopFsRelation listed
                && listed.location() instanceof InMemoryFileIndex
            || node instanceof DataSourceV2Relation relation && relation.table() instanceof AcidTable;
    }

    /** Of the optimizer's plan, which has only what makes the keys. */
    private static boolean isInAnyOrder(LogicalPlan node) {
        for (var children = node.children().iterator(); children.hasNext();) if (!isInAnyOrder(children.next())) return false;
        return node instanceof LeafNode || IN_ANY_ORDER.contains(node.getClass()) || node instanceof Aggregate distinct && distinct.groupOnly();
    }

    private static boolean isEqualAsBytes(DataType type) {
        return EQUAL_AS_BYTES.contains(type) || type instanceof IntegralType || type instanceof DecimalType;
    }

    private static Expression hash(List<Expression> keys) {
        return new XxHash64(seq(keys));
    }

    private static LogicalPlan with(LogicalPlan node, LogicalPlan... children) {
        return node.withNewChildren(seq(List.of(children)));
    }

    private static <T> Seq<T> seq(List<T> list) {
        return CollectionConverters.asScala(list).toSeq();
    }
}
