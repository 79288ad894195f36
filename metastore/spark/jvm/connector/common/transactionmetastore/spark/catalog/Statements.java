package transactionmetastore.spark.catalog;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.analysis.UnresolvedRelation;
import org.apache.spark.sql.catalyst.parser.ParseException;
import org.apache.spark.sql.catalyst.plans.logical.Command;
import org.apache.spark.sql.catalyst.plans.logical.DeleteFromTable;
import org.apache.spark.sql.catalyst.plans.logical.InsertIntoStatement;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.MergeIntoTable;
import org.apache.spark.sql.catalyst.plans.logical.ParsedStatement;
import org.apache.spark.sql.catalyst.plans.logical.Union;
import org.apache.spark.sql.catalyst.plans.logical.UnresolvedWith;
import org.apache.spark.sql.catalyst.plans.logical.UpdateTable;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.Dataset$;
import org.apache.spark.storage.StorageLevel;
import scala.jdk.javaapi.CollectionConverters;
import transactionmetastore.spark.txn.AcidTransaction;

/** For programs that hold a session: what its statements are to Spark's parser, and how many rows they change. */
public final class Statements {
    /** "query", "change" (UPDATE, DELETE, MERGE), "several" (FROM ... INSERT ... INSERT ...) or "other". */
    public String kind(SparkSession session, String text) throws ParseException {
        LogicalPlan plan = parsed(session, text), inner = inner(plan);
        if (inner instanceof UpdateTable || inner instanceof DeleteFromTable || inner instanceof MergeIntoTable) return "change";
        if (inner instanceof Union && inner.children().forall(child -> child instanceof InsertIntoStatement)) return "several";
        return plan.exists(node -> node instanceof Command || node instanceof ParsedStatement) ? "other" : "query";
    }

    /** From now on count the rows that this thread's statements change. */
    public void count() {
        AcidTransaction.count();
    }

    /** How many rows were changed since count(): null where no statement has written a transactional table. */
    public Long counted() {
        return AcidTransaction.counted();
    }

    /**
     * FROM source INSERT ... INSERT ...: the source is evaluated once, and each INSERT is a statement of the session's block. Those
     * that overwrite the partitions of their rows in one table are one statement, as in Hive, and come first: a base hides what its
     * transaction has written before.
     */
    public void several(SparkSession session, String text) throws ParseException {
        var spark = (org.apache.spark.sql.classic.SparkSession) session;
        LogicalPlan plan = parsed(session, text);
        List<LogicalPlan> inserts = new ArrayList<>(CollectionConverters.asJava(inner(plan).children()));
        LogicalPlan source = common(inserts);
        Dataset<?> rows = Dataset$.MODULE$.ofRows(spark, inside(plan, source)).persist(StorageLevel.MEMORY_AND_DISK());
        try {
            LogicalPlan once = rows.queryExecution().withCachedData();
            for (LogicalPlan insert : grouped(inserts)) {
                Dataset$.MODULE$.ofRows(spark, inside(plan, insert.transformDown(new Frames.EachNode() {
                    @Override
                    LogicalPlan of(LogicalPlan node) {
                        return node == source ? once : node;
                    }
                })));
            }
        } finally {
            rows.unpersist();
        }
    }

    private static LogicalPlan parsed(SparkSession session, String text) throws ParseException {
        return ((org.apache.spark.sql.classic.SparkSession) session).sessionState().sqlParser().parsePlan(text);
    }

    /** Without WITH. */
    private static LogicalPlan inner(LogicalPlan plan) {
        return plan instanceof UnresolvedWith with ? with.child() : plan;
    }

    /** With the WITH of a statement. */
    private static LogicalPlan inside(LogicalPlan statement, LogicalPlan plan) {
        return statement instanceof UnresolvedWith with
            ? with.withNewChildren(CollectionConverters.asScala(List.of(plan)).toSeq()) : plan;
    }

    /** What FROM names: Spark's parser puts the same object into each INSERT. */
    private static LogicalPlan common(List<LogicalPlan> inserts) {
        List<LogicalPlan> all = nodes(inserts.get(0)), others = nodes(inserts.get(1));
        return all.stream().filter(node -> others.stream().anyMatch(other -> other == node)).findFirst().orElseThrow();
    }

    private static List<LogicalPlan> nodes(LogicalPlan plan) {
        List<LogicalPlan> nodes = new ArrayList<>(List.of(plan));
        CollectionConverters.asJava(plan.children()).forEach(child -> nodes.addAll(nodes(child)));
        return nodes;
    }

    private static List<LogicalPlan> grouped(List<LogicalPlan> inserts) {
        Map<Object, List<InsertIntoStatement>> groups = new LinkedHashMap<>();
        for (LogicalPlan each : inserts) {
            InsertIntoStatement insert = (InsertIntoStatement) each;
            groups.computeIfAbsent(isOfItsRowsPartitions(insert) ? target(insert) : new Object(), key -> new ArrayList<>()).add(insert);
        }
        List<LogicalPlan> ordered = new ArrayList<>();
        for (boolean overwrites : new boolean[] {true, false}) {
            for (List<InsertIntoStatement> group : groups.values()) {
                if (group.get(0).overwrite() == overwrites) ordered.add(together(group));
            }
        }
        return ordered;
    }

    private static boolean isOfItsRowsPartitions(InsertIntoStatement insert) {
        return insert.overwrite() && insert.table() instanceof UnresolvedRelation && insert.partitionSpec().nonEmpty()
            && insert.partitionSpec().exists(key -> key._2().isEmpty());
    }

    private static String target(InsertIntoStatement insert) {
        return (((UnresolvedRelation) insert.table()).multipartIdentifier() + " " + insert.partitionSpec()).toLowerCase(Locale.ROOT);
    }

    private static LogicalPlan together(List<InsertIntoStatement> group) {
        InsertIntoStatement first = group.get(0);
        if (group.size() == 1) return first;
        List<LogicalPlan> queries = group.stream().map(InsertIntoStatement::query).toList();
        Union all = new Union(CollectionConverters.asScala(queries).toSeq(), false, false);
        for (int place = 0; place < first.productArity(); ++place) {
            if (first.productElementName(place).equals("query")) return (LogicalPlan) RoutingRule.with(first, place, all);
        }
        throw new IllegalStateException("An INSERT without a query");
    }
}
