package transactionmetastore.spark.catalog;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.spark.api.python.PythonUtils;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.analysis.CurrentNamespace$;
import org.apache.spark.sql.catalyst.analysis.EliminateSubqueryAliases;
import org.apache.spark.sql.catalyst.analysis.ResolvedNamespace;
import org.apache.spark.sql.catalyst.analysis.ResolvedTable;
import org.apache.spark.sql.catalyst.analysis.UnresolvedIdentifier;
import org.apache.spark.sql.catalyst.analysis.UnresolvedNamespace;
import org.apache.spark.sql.catalyst.analysis.UnresolvedRelation;
import org.apache.spark.sql.catalyst.analysis.UnresolvedTable;
import org.apache.spark.sql.catalyst.analysis.UnresolvedTableOrView;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.plans.logical.AlterTableCommand;
import org.apache.spark.sql.catalyst.plans.logical.AnalyzeColumn;
import org.apache.spark.sql.catalyst.plans.logical.AnalyzeTable;
import org.apache.spark.sql.catalyst.plans.logical.CreateTableAsSelect;
import org.apache.spark.sql.catalyst.plans.logical.DeleteAction;
import org.apache.spark.sql.catalyst.plans.logical.DescribeColumn;
import org.apache.spark.sql.catalyst.plans.logical.DescribeRelation;
import org.apache.spark.sql.catalyst.plans.logical.DropNamespace;
import org.apache.spark.sql.catalyst.plans.logical.DropTable;
import org.apache.spark.sql.catalyst.plans.logical.InsertIntoStatement;
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation$;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.MergeIntoTable;
import org.apache.spark.sql.catalyst.plans.logical.ReplaceTable;
import org.apache.spark.sql.catalyst.plans.logical.ReplaceTableAsSelect;
import org.apache.spark.sql.catalyst.plans.logical.SetTableProperties;
import org.apache.spark.sql.catalyst.plans.logical.SerdeInfo;
import org.apache.spark.sql.catalyst.plans.logical.ShowCreateTable;
import org.apache.spark.sql.catalyst.plans.logical.ShowTablesExtended;
import org.apache.spark.sql.catalyst.plans.logical.UnresolvedTableSpec;
import org.apache.spark.sql.catalyst.plans.logical.V2CreateTablePlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.catalyst.trees.TreeNodeTag;
import org.apache.spark.sql.catalyst.util.CharVarcharUtils;
import org.apache.spark.sql.connector.catalog.CatalogManager;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.execution.command.CreateTableLikeCommand;
import org.apache.spark.sql.execution.command.ExplainCommand;
import org.apache.spark.sql.execution.datasources.CreateTable;
import org.apache.spark.sql.types.DataTypes;
import scala.Option;
import scala.Product;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;
import transactionmetastore.spark.planner.AcidException;
import transactionmetastore.spark.procedure.BlockProcedure;
import transactionmetastore.spark.procedure.Procedures;

/**
 * Statements about transactional tables that Spark would run by its own commands, which know nothing of them.
 *
 * It keeps these for every extension of its session catalog, and what they write lies beside the deltas: an empty answer, or
 * rows that nobody sees. So this comes before Spark resolves a name: what creates a transactional table gets a provider that
 * Spark leaves to the catalog, DROP TABLE goes there too, and saveAsTable over one is refused. So is what Spark would leave out.
 * Several INSERTs of one source are one transaction: SeveralInserts.
 */
final class RoutingRule extends Rule<LogicalPlan> {
    /** Spark calls a procedure already when it analyses the call: what is explained does not become one. */
    private static final TreeNodeTag<Boolean> IS_EXPLAINED = new TreeNodeTag<>("acid.explained");
    private static final Seq<DeleteAction> NOTHING = CollectionConverters.asScala(
        List.of(new DeleteAction(Option.apply(Literal.create(false, DataTypes.BooleanType))))).toSeq();
    private static final Set<Class<?>> SHOWING = Set.of(DescribeRelation.class, DescribeColumn.class);

    private final org.apache.spark.sql.classic.SparkSession spark;

    RoutingRule(SparkSession spark) {
        this.spark = (org.apache.spark.sql.classic.SparkSession) spark;
    }

    @Override
    public LogicalPlan apply(LogicalPlan plan) {
        if (plan instanceof V2CreateTablePlan) return created(plan);
        if (plan instanceof DropTable drop && drop.child() instanceof UnresolvedIdentifier name) return dropped(drop, name);
        if (plan instanceof DropNamespace drop && drop.cascade() && drop.namespace() instanceof UnresolvedNamespace name) {
            return dropped(drop, name);
        }
        if (plan.nodeName().equals("CreateTableLike")) return createdLike(plan);
        if (plan instanceof ShowTablesExtended show) return shown(show);
        UnresolvedRelation changed = AssignedNames.target(plan);
        if (changed != null) requireNothingHiddenAssigned(plan, changed);
        if (plan instanceof CreateTableLikeCommand create) requireNotLikeTransactional(create);
        if (plan instanceof CreateTable save && save.query().isDefined()) requireNotTransactional(save.tableDesc());
        if (hasSchemaEvolution(plan)) requireEvolvable(plan);
        UnresolvedRelation replaced = ReplaceWhere.target(plan);
        if (replaced != null && named(replaced.multipartIdentifier()) != null) return ReplaceWhere.marked(plan);
        if (plan instanceof MergeIntoTable merge) {
            StatementRule.tag(merge);
            if (isUnresolvableIn40(merge, changed)) return (LogicalPlan) with(merge, place(merge, "notMatchedBySourceActions"), NOTHING);
        }
        if (plan instanceof ExplainCommand explain) SeveralInserts.inner(explain.logicalPlan()).setTagValue(IS_EXPLAINED, true);
        if (plan.getTagValue(IS_EXPLAINED).isDefined()) return plan;
        if (plan instanceof AnalyzeTable analyze && analyze.child() instanceof UnresolvedTableOrView name) return analyzed(analyze, name);
        if (plan instanceof AnalyzeColumn analyze && analyze.child() instanceof UnresolvedTableOrView name) {
            return analyzed(analyze, name, analyze.allColumns() ? List.of("*") : CollectionConverters.asJava(analyze.columnNames().get()));
        }
        if (plan instanceof ShowCreateTable show) return shown(show);
        if (plan instanceof SetTableProperties set && isTransactional(set.properties()) && set.table() instanceof UnresolvedTable name) {
            return converted(set, name);
        }
        boolean isOfColumns = plan instanceof AlterTableCommand && plan.nodeName().contains("Column");
        if (isOfColumns || SHOWING.contains(plan.getClass())) return declared(plan, isOfColumns);
        return SeveralInserts.isSeveral(plan) ? inserted(plan) : plan;
    }

    /** Spark 4.0 does not resolve a MERGE that only inserts into a table with CHAR or VARCHAR: so it gets an action that meets no row. */
    private boolean isUnresolvableIn40(MergeIntoTable merge, UnresolvedRelation target) {
        boolean isOnlyInserting = merge.matchedActions().isEmpty() && merge.notMatchedBySourceActions().isEmpty();
        if (!isOnlyInserting || target == null || !spark.version().startsWith("4.0.")) return false;
        Named table = named(target.multipartIdentifier());
        AcidTable found = table == null ? null : table.catalog.acidTable(table.ident, null);
        return found != null && found.type().exists(column -> CharVarcharUtils.getRawType(column.metadata()).isDefined());
    }

    /** To all other statements CHAR and VARCHAR are STRING: see TableDefinition.Field. */
    private LogicalPlan declared(LogicalPlan plan, boolean isAltered) {
        Seq<String> name = plan.children().head() instanceof UnresolvedTable one ? one.multipartIdentifier()
            : plan.children().head() instanceof UnresolvedTableOrView one ? one.multipartIdentifier() : null;
        if (name == null || spark.sessionState().catalog().isTempView(name)) return plan;
        Named table = named(name);
        AcidTable found = table == null ? null : table.catalog.acidTable(table.ident, null);
        if (found == null) return plan;
        List<LogicalPlan> children = new ArrayList<>(CollectionConverters.asJava(plan.children()));
        children.set(0, ResolvedTable.create(table.catalog, table.ident, found.declared(isAltered)));
        return plan.withNewChildren(CollectionConverters.asScala(children).toSeq());
    }

    private LogicalPlan analyzed(AnalyzeTable analyze, UnresolvedTableOrView name) {
        if (analyze.partitionSpec().nonEmpty() && transactional(name) != null) {
            throw new AcidException("UNSUPPORTED", "ANALYZE TABLE notes rows and bytes of all of "
                + String.join(".", CollectionConverters.asJava(name.multipartIdentifier())) + ": leave out PARTITION.");
        }
        return analyzed(analyze, name, List.of());
    }

    /** ANALYZE TABLE of a transactional table is CALL system.analyze. */
    private LogicalPlan analyzed(LogicalPlan analyze, UnresolvedTableOrView name, List<String> columns) {
        Named table = transactional(name);
        if (table == null) return analyze;
        Identifier procedure = Identifier.of(new String[] {Procedures.NAMESPACE}, "analyze");
        return Procedures.called(table.catalog, table.catalog.loadProcedure(procedure), List.of(
            Literal.create(AcidCatalogBase.fullName(table.ident), DataTypes.StringType),
            Literal.create(columns.toArray(new String[0]), DataTypes.createArrayType(DataTypes.StringType))));
    }

    /** A table of ours that is there; null of any other name. */
    private Named transactional(UnresolvedTableOrView name) {
        if (spark.sessionState().catalog().isTempView(name.multipartIdentifier())) return null;
        Named table = named(name.multipartIdentifier());
        return table == null || table.catalog.acidTable(table.ident, null) == null ? null : table;
    }

    private LogicalPlan inserted(LogicalPlan plan) {
        AcidCatalogBase catalog = null;
        for (UnresolvedRelation target : SeveralInserts.targets(plan)) {
            Named table = named(target.multipartIdentifier());
            if (table == null || table.catalog.acidTable(table.ident, null) == null) continue;
            if (SeveralInserts.hasOthers(plan)) {
                throw new AcidException("UNSUPPORTED", "FROM ... INSERT ... into " + table.ident + " is one transaction, which INSERT OVERWRITE "
                    + "DIRECTORY and INSERT ... REPLACE WHERE have no part in: write these by statements of their own.");
            }
            if (catalog != null && !catalog.name().equals(table.catalog.name())) {
                throw new AcidException("UNSUPPORTED", "The tables of this statement are in two catalogs, which have no transaction "
                    + "together: write each of them by a statement of its own.");
            }
            catalog = table.catalog;
        }
        return catalog == null ? plan : new SeveralInserts(spark, catalog, plan).called();
    }

    private LogicalPlan created(LogicalPlan plan) {
        boolean isReplacing = plan instanceof ReplaceTable || plan instanceof ReplaceTableAsSelect;
        LogicalPlan replacing = isReplacing ? replacing(plan) : null;
        if (replacing != null) return replacing;
        if (!(plan.children().head() instanceof UnresolvedIdentifier name) || named(name.nameParts()) == null) return plan;
        for (int place = 0; place < plan.productArity(); ++place) {
            if (plan.productElement(place) instanceof UnresolvedTableSpec spec && isTransactional(spec.properties())) {
                if (plan instanceof CreateTableAsSelect || isReplacing) requireNoBlock(plan);
                return isRouted(spec) ? plan : (LogicalPlan) with(plan, place, routed(spec));
            }
        }
        return plan;
    }

    private void requireNoBlock(LogicalPlan plan) {
        if (!(plan.children().head() instanceof UnresolvedIdentifier name)) return;
        Named table = named(name.nameParts());
        if (table == null || table.catalog.block() == null) return;
        throw new AcidException("InvalidOperationError", "A table is created at once, whatever becomes of a transaction: inside one use "
            + "INSERT INTO a table that was created before.");
    }

    private static boolean isTransactional(scala.collection.immutable.Map<String, String> properties) {
        for (var each = properties.iterator(); each.hasNext();) {
            var property = each.next();
            if (property._1().equalsIgnoreCase("transactional")) return property._2().equalsIgnoreCase("true");
        }
        return false;
    }

    private static boolean isRouted(UnresolvedTableSpec spec) {
        return spec.provider().contains(AcidProvider.class.getName());
    }

    private static UnresolvedTableSpec routed(UnresolvedTableSpec spec) {
        UnresolvedTableSpec made = spec;
        for (int place = 0; place < spec.productArity(); ++place) {
            switch (spec.productElementName(place)) {
                case "properties" -> made = (UnresolvedTableSpec) with(made, place, properties(spec));
                case "provider" -> made = (UnresolvedTableSpec) with(made, place, Option.apply(AcidProvider.class.getName()));
                case "serde" -> made = (UnresolvedTableSpec) with(made, place, Option.empty());
                default -> { }
            }
        }
        return made;
    }

    private static String format(UnresolvedTableSpec spec) {
        if (spec.provider().isDefined()) return spec.provider().get();
        if (spec.serde().isEmpty()) return "orc";
        SerdeInfo serde = spec.serde().get();
        if (serde.storedAs().isDefined()) return serde.storedAs().get();
        if (serde.formatClasses().isEmpty()) return "textfile";  // as in Hive, where only rows are described
        return serde.formatClasses().get().input() + "," + serde.formatClasses().get().output();
    }

    /** The properties, with what Creation takes out again: how files are stored, and ROW FORMAT. */
    private static scala.collection.immutable.Map<String, String> properties(UnresolvedTableSpec spec) {
        Map<String, String> properties = new HashMap<>(CollectionConverters.asJava(spec.properties()));
        if (spec.provider().isDefined() || spec.serde().isDefined()) properties.put(AcidCatalogBase.FORMAT, format(spec));
        if (spec.serde().isDefined()) {
            SerdeInfo rows = spec.serde().get();
            if (rows.serde().isDefined()) properties.put(AcidCatalogBase.SERDE, rows.serde().get());
            CollectionConverters.asJava(rows.serdeProperties())
                .forEach((key, value) -> properties.put(AcidCatalogBase.SERDE_PROPERTY + key, value));
        }
        return PythonUtils.toScalaMap(properties);
    }

    /** The place of a part of a node by its name; -1: nodes of this Spark have none. */
    static int place(Product node, String name) {
        for (int place = 0; place < node.productArity(); ++place) {
            if (node.productElementName(place).equals(name)) return place;
        }
        return -1;
    }

    /** The node with another part. Versions of Spark differ in the parts. */
    static <N extends TreeNode<?> & Product> TreeNode<?> with(N node, int place, Object part) {
        Object[] parts = new Object[node.productArity()];
        for (int other = 0; other < parts.length; ++other) parts[other] = node.productElement(other);
        parts[place] = part;
        return (TreeNode<?>) node.makeCopy(parts);
    }

    private LogicalPlan dropped(DropTable drop, UnresolvedIdentifier name) {
        if (spark.sessionState().catalog().isTempView(name.nameParts())) return drop;
        Named table = named(name.nameParts());
        if (table == null || table.catalog.acidTable(table.ident, null) == null) return drop;
        return drop.withNewChildInternal(
            ResolvedName.of(table.catalog.underAnotherName(), table.ident, drop));
    }

    private LogicalPlan dropped(DropNamespace drop, UnresolvedNamespace name) {
        NamedDatabase db = database(name.multipartIdentifier());
        return db == null ? drop : drop.withNewChildInternal(new ResolvedNamespace(db.catalog.underAnotherName(),
            db.parts, scala.collection.immutable.Map$.MODULE$.empty()));
    }

    /** The planner's statement: Spark's own command prints a statement that makes another table, or none. */
    private LogicalPlan shown(ShowCreateTable show) {
        Named table = show.child() instanceof UnresolvedTableOrView name ? transactional(name) : null;
        if (table == null) return show;
        List<Row> rows = List.of(RowFactory.create(table.catalog.createStatement(table.ident)));
        return LocalRelation$.MODULE$.fromExternalRows(show.output(), CollectionConverters.asScala(rows).toSeq());
    }

    private LogicalPlan shown(ShowTablesExtended show) {
        NamedDatabase db;
        if (show.namespace() instanceof UnresolvedNamespace name) db = database(name.multipartIdentifier());
        else if (show.namespace() instanceof CurrentNamespace$) db = database(current());
        else return show;
        return db == null || !db.catalog.isSessions() ? show : new ShownTables(spark.sessionState().catalog(), db.catalog).extended(db.parts.head(), show);
    }

    private Seq<String> current() {
        return CollectionConverters.asScala(List.of(spark.sessionState().catalogManager().currentNamespace())).toSeq();
    }

    /** A database of one of our catalogs, which may be there or not. */
    private record NamedDatabase(AcidCatalogBase catalog, Seq<String> parts) {}

    /** What a name means; null where that is none of ours. */
    private NamedDatabase database(Seq<String> parts) {
        CatalogManager catalogs = spark.sessionState().catalogManager();
        boolean isInNamed = parts.length() > 1 && catalogs.isCatalogRegistered(parts.head());
        var plugin = isInNamed ? catalogs.catalog(parts.head()) : catalogs.currentCatalog();
        if (!(plugin instanceof AcidCatalogBase catalog) || parts.length() != (isInNamed ? 2 : 1)) return null;
        return new NamedDatabase(catalog, isInNamed ? tail(parts) : parts);
    }

    @SuppressWarnings("unchecked")
    private static Seq<String> tail(Seq<String> parts) {
        return (Seq<String>) parts.tail();
    }

    /** From Spark 4.2 on: CREATE TABLE LIKE a transactional table goes to the catalog. */
    private LogicalPlan createdLike(LogicalPlan plan) {
        if (!(plan.children().apply(0) instanceof UnresolvedIdentifier name)
                || !(plan.children().apply(1) instanceof UnresolvedTableOrView source)) return plan;
        if (spark.sessionState().catalog().isTempView(source.multipartIdentifier())) return plan;
        Named made = named(name.nameParts()), like = named(source.multipartIdentifier());
        if (made == null || like == null || like.catalog.acidTable(like.ident, null) == null) return plan;
        LogicalPlan routed = ResolvedName.of(made.catalog.underAnotherName(), made.ident, plan);
        return plan.withNewChildren(CollectionConverters.asScala(List.of(routed, source)).toSeq());
    }

    /** The name of a table in a catalog of this class. The table may be missing. */
    private record Named(AcidCatalogBase catalog, Identifier ident) {}

    /** What a name means; null where it is in another catalog. */
    private Named named(Seq<String> parts) {
        CatalogManager catalogs = spark.sessionState().catalogManager();
        boolean isInNamed = parts.length() > 2 || parts.length() == 2 && catalogs.isCatalogRegistered(parts.head());
        var plugin = isInNamed ? catalogs.catalog(parts.head()) : catalogs.currentCatalog();
        if (!(plugin instanceof AcidCatalogBase catalog)) return null;
        String[] namespace = parts.length() == 1 ? catalogs.currentNamespace()
            : isInNamed && parts.length() == 2 ? catalog.defaultNamespace() : new String[] {parts.apply(parts.length() - 2)};
        return new Named(catalog, Identifier.of(namespace, parts.last()));
    }

    /** The plan that replaces a transactional table; null where there is none. Spark would drop it before the new rows are there. */
    private LogicalPlan replacing(LogicalPlan plan) {
        if (!(plan.children().head() instanceof UnresolvedIdentifier name)) return null;
        Named table = named(name.nameParts());
        if (table == null || table.catalog.acidTable(table.ident, null) == null) return null;
        LogicalPlan routed = plan;
        for (int place = 0; place < plan.productArity(); ++place) {
            Object part = plan.productElement(place);
            if (part == name) routed = (LogicalPlan) with(routed, place, ResolvedName.of(table.catalog.replacing(), table.ident, plan));
            if (part instanceof UnresolvedTableSpec spec) routed = (LogicalPlan) with(routed, place, routed(spec));
        }
        return routed;
    }

    private void requireNothingHiddenAssigned(LogicalPlan plan, UnresolvedRelation target) {
        String column = AssignedNames.hidden(plan);
        Named table = column == null ? null : named(target.multipartIdentifier());
        AcidTable changed = table == null ? null : table.catalog.acidTable(table.ident, null);
        if (changed == null) return;
        throw new AcidException("InvalidOperationError", "Hidden column " + column + " of " + changed.fullName()
            + " cannot be updated: it is where the row was written. Leave it out of SET, and use it in WHERE.");
    }

    /** Whether a statement says WITH SCHEMA EVOLUTION; INSERT has these words since Spark 4.2. */
    private static boolean hasSchemaEvolution(LogicalPlan plan) {
        if (!(plan instanceof MergeIntoTable) && !(plan instanceof InsertIntoStatement)) return false;
        int place = place(plan, "withSchemaEvolution");
        return place >= 0 && Boolean.TRUE.equals(plan.productElement(place));
    }

    /** Spark 4.0 would leave new columns out. And Spark finds columns by the places that they had, where a new one comes before the keys. */
    private void requireEvolvable(LogicalPlan plan) {
        LogicalPlan target = plan instanceof InsertIntoStatement insert ? insert.table() : plan.children().head();
        Named name = EliminateSubqueryAliases.apply(target) instanceof UnresolvedRelation relation ? named(relation.multipartIdentifier()) : null;
        AcidTable changed = name == null ? null : name.catalog.acidTable(name.ident, null);
        if (changed == null) return;
        if (EvolvingTable.EVOLVING.isEmpty()) {
            throw new AcidException("UNSUPPORTED", "WITH SCHEMA EVOLUTION of " + changed.fullName() + " needs Spark 4.1 or newer: "
                + "ALTER TABLE " + changed.fullName() + " ADD COLUMNS first, and leave out these words.");
        }
        if (plan instanceof MergeIntoTable && changed.partitioning().length > 0) {
            throw new AcidException("UNSUPPORTED", changed.fullName() + " has partition keys, and Spark takes them for the columns that it adds: "
                + "ALTER TABLE " + changed.fullName() + " ADD COLUMNS first, and MERGE without WITH SCHEMA EVOLUTION.");
        }
        if (plan instanceof InsertIntoStatement insert && !insert.byName() && changed.partitioning().length > 0) {
            throw new AcidException("UNSUPPORTED", changed.fullName() + " has partition keys, which are its last columns, so new columns "
                + "would move them: INSERT WITH SCHEMA EVOLUTION INTO " + changed.fullName() + " BY NAME.");
        }
    }

    /** A plain table becomes transactional: rows of files with Spark's names could not be changed, so these get Hive's. */
    private LogicalPlan converted(SetTableProperties set, UnresolvedTable name) {
        Named table = named(name.multipartIdentifier());
        if (table == null || table.catalog.acidTable(table.ident, null) != null || !table.catalog.tableExists(table.ident)) return set;
        Map<String, String> properties = new HashMap<>(CollectionConverters.asJava(set.properties()));
        return Procedures.called(table.catalog, new BlockProcedure("convert", "ALTER TABLE ... SET TBLPROPERTIES ('transactional'='true')",
            () -> table.catalog.convert(table.ident, properties)), List.of());
    }

    /** Before 4.2 Spark runs the statement by a command of its own, which the catalog does not see. */
    private void requireNotLikeTransactional(CreateTableLikeCommand create) {
        AcidTable source = acidTable(create.sourceTable());
        if (source == null) return;
        throw new AcidException("UNSUPPORTED", "CREATE TABLE ... LIKE " + source.fullName() + " needs Spark 4.2 or newer, because the table "
            + "is transactional, and this is Spark " + spark.version() + ": give the new table its columns (DESCRIBE TABLE shows them) and "
            + "TBLPROPERTIES ('transactional'='true').");
    }

    private void requireNotTransactional(CatalogTable table) {
        AcidTable target = acidTable(table.identifier());
        if (target == null) return;
        throw new AcidException("UNSUPPORTED", "saveAsTable would write files beside the transactions of " + target.fullName()
            + ": use writeTo(\"" + target.fullName() + "\").append() or .overwritePartitions(), or insertInto.");
    }

    /** The transactional table of a name in Spark's session catalog, or null. */
    private AcidTable acidTable(TableIdentifier name) {
        CatalogManager catalogs = spark.sessionState().catalogManager();
        if (!(catalogs.v2SessionCatalog() instanceof AcidCatalogBase catalog)) return null;
        if (name.database().isEmpty() && catalogs.v1SessionCatalog().isTempView(name)) return null;
        String db = name.database().getOrElse(() -> catalogs.v1SessionCatalog().getCurrentDatabase());
        return catalog.acidTable(Identifier.of(new String[] {db}, name.table()), null);
    }
}
