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
 * A rule that reads only those rows of a MERGE's target whose keys may be in the source: a Bloom filter of the source's
 * keys decides.
 *
 * A MERGE that may add rows is an outer join that keeps the whole source. Spark can broadcast only the other side of such a
 * join, so it would shuffle and sort all rows and columns of the target to change a few.
 *
 * The source is read twice, and both reads must give the same rows: otherwise a row that exists would be added again. So
 * the rule takes only sources of rows in the plan, of files that are listed once, and of ACID tables in the statement's
 * snapshot, with keys that depend on no order of rows. (Spark itself refuses a non-deterministic source.)
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

    /**
     * Returns true if the target is large, or its size is unknown. A small target is merged faster than the source is read
     * again.
     */
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

    /** Returns a filter for the target's rows that the join may find; null for all rows. */
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

    /**
     * Returns true if each read of the plan gives the same rows. A catalog's table is listed anew at each read, so its
     * files may differ.
     */
    private static boolean isStable(LogicalPlan node) {
        if (node.expressions().exists(SubqueryExpression::hasSubquery)) return false;
        for (var children = node.children().iterator(); children.hasNext();) if (!isStable(children.next())) return false;
        return !(node instanceof LeafNode) || node instanceof LocalRelation || node instanceof OneRowRelation || node instanceof Range
            || node instanceof LogicalRelation files && files.relation() instanceof HadoopFsRelation listed
                && listed.location() instanceof InMemoryFileIndex
            || node instanceof DataSourceV2Relation relation && relation.table() instanceof AcidTable;
    }

    /**
     * Returns true if the rows do not depend on an order. "node": of the optimized plan, which has only the columns of the
     * keys.
     */
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
