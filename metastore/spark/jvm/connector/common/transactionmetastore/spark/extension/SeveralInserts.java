package transactionmetastore.spark.extension;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.apache.spark.sql.catalyst.analysis.UnresolvedRelation;
import org.apache.spark.sql.catalyst.parser.ParseException;
import org.apache.spark.sql.catalyst.plans.logical.InsertIntoDir;
import org.apache.spark.sql.catalyst.plans.logical.InsertIntoStatement;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.OverwriteByExpression;
import org.apache.spark.sql.catalyst.plans.logical.Union;
import org.apache.spark.sql.catalyst.plans.logical.UnresolvedWith;
import org.apache.spark.sql.catalyst.trees.TreePattern;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.Dataset$;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.storage.StorageLevel;
import scala.jdk.javaapi.CollectionConverters;
import transactionmetastore.spark.catalog.AcidCatalogBase;
import transactionmetastore.spark.planner.AcidException;
import transactionmetastore.spark.procedure.BlockProcedure;

/**
 * The statement FROM source INSERT ... INSERT ... as one transaction; Spark begins none, and each INSERT would have its
 * own.
 *
 * The source is evaluated once, and each INSERT is a statement of a block: the session's block, or a new one. INSERTs that
 * overwrite the partitions of their rows in the same table become one statement, as in Hive, and come first: a base hides
 * earlier writes of its transaction. To Spark the whole is a procedure that is called.
 */
record SeveralInserts(SparkSession spark, AcidCatalogBase catalog, LogicalPlan statement) {
    /** Returns true if a parsed plan is such a statement. */
    static boolean isSeveral(LogicalPlan plan) {
        LogicalPlan inner = inner(plan);
        return inner instanceof Union && inner.children().forall(child -> child instanceof InsertIntoStatement
            || child instanceof InsertIntoDir || child instanceof OverwriteByExpression);
    }

    /**
     * Returns the call that runs such a statement in one transaction; the statement itself if it writes no transactional
     * table.
     */
    static LogicalPlan called(LogicalPlan plan, CatalogNames names) {
        AcidCatalogBase catalog = null;
        for (UnresolvedRelation target : targets(plan)) {
            CatalogNames.Found table = names.found(target.multipartIdentifier());
            if (table == null) continue;
            if (hasOthers(plan)) {
                throw new AcidException("UNSUPPORTED", "FROM ... INSERT ... into " + table.ident() + " is one transaction, which INSERT OVERWRITE "
                    + "DIRECTORY and INSERT ... REPLACE WHERE have no part in: write these by statements of their own.");
            }
            if (catalog != null && !catalog.name().equals(table.catalog().name())) {
                throw new AcidException("UNSUPPORTED", "The tables of this statement are in two catalogs, which have no transaction "
                    + "together: write each of them by a statement of its own.");
            }
            catalog = table.catalog();
        }
        return catalog == null ? plan : new SeveralInserts(names.spark(), catalog, plan).called();
    }

    /** Returns true if one of the INSERTs writes a directory, or uses REPLACE WHERE. */
    private static boolean hasOthers(LogicalPlan plan) {
        return inner(plan).children().exists(child -> !(child instanceof InsertIntoStatement));
    }

    /** Returns the names of the targets. A directory has none. */
    private static List<UnresolvedRelation> targets(LogicalPlan plan) {
        List<UnresolvedRelation> targets = new ArrayList<>();
        for (LogicalPlan insert : CollectionConverters.asJava(inner(plan).children())) {
            Object table = insert instanceof InsertIntoStatement into ? into.table()
                : insert instanceof OverwriteByExpression replace ? replace.table() : null;
            if (table instanceof UnresolvedRelation target) targets.add(target);
        }
        return targets;
    }

    private LogicalPlan called() {
        return Calls.of(catalog, new BlockProcedure("several_inserts", "FROM ... INSERT ... INSERT ...",
            () -> catalog.together(this::run).forEach(table -> BlockProcedure.refresh(catalog.name(), table))), List.of());
    }

    private void run() {
        LogicalPlan plan = asWritten();
        List<LogicalPlan> inserts = new ArrayList<>(CollectionConverters.asJava(inner(plan).children()));
        LogicalPlan source = common(inserts);
        if (source == null) {
            for (LogicalPlan insert : grouped(inserts)) Dataset$.MODULE$.ofRows(spark, inside(plan, insert));
            return;
        }
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

    /**
     * Returns the statement parsed again from its text: Spark has already replaced the names of WITH, and only in the
     * parsed text do all INSERTs share a source.
     */
    private LogicalPlan asWritten() {
        if (statement.origin().sqlText().isEmpty()) return statement;
        try {
            LogicalPlan parsed = spark.sessionState().sqlParser().parsePlan(statement.origin().sqlText().get());
            boolean isSame = isSeveral(parsed) && !hasOthers(parsed) && targets(parsed).size() == targets(statement).size()
                && !parsed.containsPattern(TreePattern.PARAMETER());
            return isSame ? parsed : statement;
        } catch (ParseException error) {
            return statement;  // the statement is part of a script
        }
    }

    /** Returns the plan without WITH. */
    static LogicalPlan inner(LogicalPlan plan) {
        return plan instanceof UnresolvedWith with ? with.child() : plan;
    }

    /** Returns the plan inside the WITH of a statement. */
    private static LogicalPlan inside(LogicalPlan statement, LogicalPlan plan) {
        return statement instanceof UnresolvedWith with
            ? with.withNewChildren(CollectionConverters.asScala(List.of(plan)).toSeq()) : plan;
    }

    /** Returns the source that FROM names, one object in all INSERTs of the parsed plan; null where Spark has copied it. */
    private static LogicalPlan common(List<LogicalPlan> inserts) {
        List<LogicalPlan> all = nodes(inserts.get(0)), others = nodes(inserts.get(1));
        return all.stream().filter(node -> others.stream().anyMatch(other -> other == node)).findFirst().orElse(null);
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
        return Nodes.with(first, Nodes.place(first, "query"), all);
    }
}
