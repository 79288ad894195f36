package transactionmetastore.spark.extension;

import java.util.List;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.function.Predicate;
import java.util.function.UnaryOperator;
import org.apache.spark.sql.catalyst.plans.logical.AlterTableCommand;
import org.apache.spark.sql.catalyst.plans.logical.AnalyzeColumn;
import org.apache.spark.sql.catalyst.plans.logical.AnalyzeTable;
import org.apache.spark.sql.catalyst.plans.logical.DescribeColumn;
import org.apache.spark.sql.catalyst.plans.logical.DescribeRelation;
import org.apache.spark.sql.catalyst.plans.logical.DropNamespace;
import org.apache.spark.sql.catalyst.plans.logical.DropTable;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.MergeIntoTable;
import org.apache.spark.sql.catalyst.plans.logical.SetTableProperties;
import org.apache.spark.sql.catalyst.plans.logical.ShowCreateTable;
import org.apache.spark.sql.catalyst.plans.logical.ShowTablesExtended;
import org.apache.spark.sql.catalyst.plans.logical.V2CreateTablePlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNodeTag;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.command.CreateTableLikeCommand;
import org.apache.spark.sql.execution.command.ExplainCommand;
import org.apache.spark.sql.execution.datasources.CreateTable;

/**
 * A rule that sends statements about transactional tables to their handlers, before Spark resolves a name.
 *
 * Spark's own commands know nothing of transactional tables, and Spark keeps some of them even for an extension of its
 * session catalog: they would show an empty table, or write rows beside the deltas that nobody sees. A handler returns the
 * plan unchanged where the statement is Spark's own; the first handler that returns another plan wins.
 */
final class RoutingRule extends Rule<LogicalPlan> {
    /**
     * The mark of an explained statement. Spark runs a procedure when it analyses the call, so an explained statement is
     * not made a call.
     */
    private static final TreeNodeTag<Boolean> IS_EXPLAINED = new TreeNodeTag<>("acid.explained");

    private record Handler(Predicate<LogicalPlan> isFor, UnaryOperator<LogicalPlan> handle) {}

    private final List<Handler> handlers;

    RoutingRule(SparkSession spark) {
        CatalogNames names = new CatalogNames(spark);
        CreatedTables created = new CreatedTables(names);
        DroppedNames dropped = new DroppedNames(names);
        ShownTables shown = new ShownTables(names);
        AnalyzedTables analyzed = new AnalyzedTables(names);
        handlers = List.of(
            new Handler(plan -> plan instanceof V2CreateTablePlan, created::created),
            new Handler(plan -> plan.nodeName().equals("CreateTableLike"), created::createdLike),
            check(CreateTableLikeCommand.class, created::requireNotLikeTransactional),
            check(CreateTable.class, created::requireNotSavedOver),
            of(SetTableProperties.class, unexplained(created::converted)),
            of(DropTable.class, dropped::table),
            of(DropNamespace.class, dropped::database),
            of(ShowTablesExtended.class, shown::extended),
            check(LogicalPlan.class, new AssignedNames(names)::requireNoneHidden),
            check(LogicalPlan.class, new SchemaEvolution(names)::require),
            of(LogicalPlan.class, new ReplaceWhere(names)::marked),
            of(MergeIntoTable.class, new InsertingMerge(names)::resolvable),
            check(ExplainCommand.class, explain -> SeveralInserts.inner(explain.logicalPlan()).setTagValue(IS_EXPLAINED, true)),
            of(AnalyzeTable.class, unexplained(analyzed::whole)),
            of(AnalyzeColumn.class, unexplained(analyzed::columns)),
            of(ShowCreateTable.class, unexplained(shown::created)),
            of(DescribeRelation.class, unexplained(shown::described)),
            of(DescribeColumn.class, unexplained(shown::described)),
            new Handler(plan -> plan instanceof AlterTableCommand && plan.nodeName().contains("Column"), unexplained(shown::altered)::apply),
            new Handler(SeveralInserts::isSeveral, unexplained(plan -> SeveralInserts.called(plan, names))::apply));
    }

    private static <P> Handler of(Class<P> node, Function<P, LogicalPlan> handle) {
        return new Handler(node::isInstance, plan -> handle.apply(node.cast(plan)));
    }

    private static <P> Handler check(Class<P> node, Consumer<P> require) {
        return new Handler(node::isInstance, plan -> {
            require.accept(node.cast(plan));
            return plan;
        });
    }

    private static <P extends LogicalPlan> Function<P, LogicalPlan> unexplained(Function<P, LogicalPlan> handle) {
        return plan -> plan.getTagValue(IS_EXPLAINED).isDefined() ? plan : handle.apply(plan);
    }

    @Override
    public LogicalPlan apply(LogicalPlan plan) {
        for (Handler handler : handlers) {
            LogicalPlan handled = handler.isFor.test(plan) ? handler.handle.apply(plan) : plan;
            if (handled != plan) return handled;
        }
        return plan;
    }
}
