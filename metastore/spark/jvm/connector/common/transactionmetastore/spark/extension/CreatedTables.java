package transactionmetastore.spark.extension;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.api.python.PythonUtils;
import org.apache.spark.sql.catalyst.analysis.UnresolvedIdentifier;
import org.apache.spark.sql.catalyst.analysis.UnresolvedTable;
import org.apache.spark.sql.catalyst.analysis.UnresolvedTableOrView;
import org.apache.spark.sql.catalyst.plans.logical.CreateTableAsSelect;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.ReplaceTable;
import org.apache.spark.sql.catalyst.plans.logical.ReplaceTableAsSelect;
import org.apache.spark.sql.catalyst.plans.logical.SerdeInfo;
import org.apache.spark.sql.catalyst.plans.logical.SetTableProperties;
import org.apache.spark.sql.catalyst.plans.logical.UnresolvedTableSpec;
import org.apache.spark.sql.execution.command.CreateTableLikeCommand;
import org.apache.spark.sql.execution.datasources.CreateTable;
import scala.Option;
import scala.jdk.javaapi.CollectionConverters;
import transactionmetastore.spark.catalog.AcidCatalogBase;
import transactionmetastore.spark.catalog.AcidProvider;
import transactionmetastore.spark.catalog.AcidTable;
import transactionmetastore.spark.internals.ResolvedName;
import transactionmetastore.spark.planner.AcidException;
import transactionmetastore.spark.procedure.BlockProcedure;

/**
 * The rule for CREATE and REPLACE of transactional tables. They get a provider that Spark leaves to the catalog; other ways
 * to create one are refused.
 */
record CreatedTables(CatalogNames names) {
    /** Sends CREATE TABLE and REPLACE TABLE, also AS SELECT, to the catalog. */
    LogicalPlan created(LogicalPlan plan) {
        boolean isReplacing = plan instanceof ReplaceTable || plan instanceof ReplaceTableAsSelect;
        LogicalPlan replacing = isReplacing ? replacing(plan) : null;
        if (replacing != null) return replacing;
        if (!(plan.children().head() instanceof UnresolvedIdentifier name) || names.named(name.nameParts()) == null) return plan;
        for (int place = 0; place < plan.productArity(); ++place) {
            if (plan.productElement(place) instanceof UnresolvedTableSpec spec && isTransactional(spec.properties())) {
                if (plan instanceof CreateTableAsSelect || isReplacing) requireNoBlock(name);
                return isRouted(spec) ? plan : Nodes.with(plan, place, routed(spec));
            }
        }
        return plan;
    }

    private void requireNoBlock(UnresolvedIdentifier name) {
        if (names.named(name.nameParts()).catalog().block() == null) return;
        throw new AcidException("InvalidOperationError", "A table is created at once, whatever becomes of a transaction: inside one use "
            + "INSERT INTO a table that was created before.");
    }

    /**
     * Returns the plan that replaces a transactional table; null where there is none. Spark's own plan would drop the table
     * before the new rows are written.
     */
    private LogicalPlan replacing(LogicalPlan plan) {
        if (!(plan.children().head() instanceof UnresolvedIdentifier name)) return null;
        CatalogNames.Found table = names.found(name.nameParts());
        if (table == null) return null;
        LogicalPlan routed = plan;
        for (int place = 0; place < plan.productArity(); ++place) {
            Object part = plan.productElement(place);
            if (part == name) routed = Nodes.with(routed, place, ResolvedName.of(table.catalog().replacing(), table.ident(), plan));
            if (part instanceof UnresolvedTableSpec spec) routed = Nodes.with(routed, place, routed(spec));
        }
        return routed;
    }

    /** Sends CREATE TABLE LIKE a transactional table to the catalog, from Spark 4.2 on. */
    LogicalPlan createdLike(LogicalPlan plan) {
        if (!(plan.children().apply(0) instanceof UnresolvedIdentifier name)
                || !(plan.children().apply(1) instanceof UnresolvedTableOrView source)) return plan;
        CatalogNames.TableName made = names.named(name.nameParts());
        if (made == null || names.foundBehindViews(source.multipartIdentifier()) == null) return plan;
        LogicalPlan routed = ResolvedName.of(made.catalog().underAnotherName(), made.ident(), plan);
        return plan.withNewChildren(CollectionConverters.asScala(List.of(routed, source)).toSeq());
    }

    /** Refuses CREATE TABLE LIKE before 4.2, where Spark runs the statement by a command of its own, which the catalog does not see. */
    void requireNotLikeTransactional(CreateTableLikeCommand create) {
        AcidTable source = names.inSessionCatalog(create.sourceTable());
        if (source == null) return;
        throw new AcidException("UNSUPPORTED", "CREATE TABLE ... LIKE " + source.fullName() + " needs Spark 4.2 or newer, because the table "
            + "is transactional, and this is Spark " + names.spark().version() + ": give the new table its columns (DESCRIBE TABLE shows them) and "
            + "TBLPROPERTIES ('transactional'='true').");
    }

    /** Refuses saveAsTable over a transactional table. */
    void requireNotSavedOver(CreateTable save) {
        AcidTable target = save.query().isDefined() ? names.inSessionCatalog(save.tableDesc().identifier()) : null;
        if (target == null) return;
        throw new AcidException("UNSUPPORTED", "saveAsTable would write files beside the transactions of " + target.fullName()
            + ": use writeTo(\"" + target.fullName() + "\").append() or .overwritePartitions(), or insertInto.");
    }

    /**
     * Makes a plain table transactional. Rows in files with Spark's names could not be changed, so the files get Hive's
     * names.
     */
    LogicalPlan converted(SetTableProperties set) {
        if (!isTransactional(set.properties()) || !(set.table() instanceof UnresolvedTable name)) return set;
        CatalogNames.TableName table = names.named(name.multipartIdentifier());
        if (table == null || table.catalog().acidTable(table.ident(), null) != null || !table.catalog().tableExists(table.ident())) return set;
        Map<String, String> properties = new HashMap<>(CollectionConverters.asJava(set.properties()));
        return Calls.of(table.catalog(), new BlockProcedure("convert", "ALTER TABLE ... SET TBLPROPERTIES ('transactional'='true')",
            () -> table.catalog().convert(table.ident(), properties)), List.of());
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
                case "properties" -> made = Nodes.with(made, place, properties(spec));
                case "provider" -> made = Nodes.with(made, place, Option.apply(AcidProvider.class.getName()));
                case "serde" -> made = Nodes.with(made, place, Option.empty());
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
        if (serde.formatClasses().isEmpty()) return "textfile";  // only rows are described, as in Hive
        return serde.formatClasses().get().input() + "," + serde.formatClasses().get().output();
    }

    /** Returns the properties, with the storage format and ROW FORMAT, which Creation takes out again. */
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
}
