package transactionmetastore.spark.extension;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.analysis.CurrentNamespace$;
import org.apache.spark.sql.catalyst.analysis.ResolvedTable;
import org.apache.spark.sql.catalyst.analysis.UnresolvedNamespace;
import org.apache.spark.sql.catalyst.analysis.UnresolvedTable;
import org.apache.spark.sql.catalyst.analysis.UnresolvedTableOrView;
import org.apache.spark.sql.catalyst.catalog.SessionCatalog;
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation$;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.ShowCreateTable;
import org.apache.spark.sql.catalyst.plans.logical.ShowTablesExtended;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;
import transactionmetastore.spark.catalog.AcidCatalogBase;
import transactionmetastore.spark.catalog.AcidTable;

/**
 * The rule for SHOW CREATE TABLE, SHOW TABLE EXTENDED, and statements that show or alter columns of transactional tables.
 *
 * Spark's own commands would print a statement for a different table. Or they would load each table from the session
 * catalog, which gets no transactional tables, and fail at the first.
 */
record ShownTables(CatalogNames names) {
    /** Returns the planner's statement that creates a table of the same definition. */
    LogicalPlan created(ShowCreateTable show) {
        CatalogNames.Found table = show.child() instanceof UnresolvedTableOrView name
            ? names.foundBehindViews(name.multipartIdentifier()) : null;
        if (table == null) return show;
        return rows(show, List.of(RowFactory.create(table.catalog().createStatement(table.ident()))));
    }

    LogicalPlan described(LogicalPlan plan) {
        return declared(plan, false);
    }

    LogicalPlan altered(LogicalPlan plan) {
        return declared(plan, true);
    }

    /**
     * Gives a statement the declared types of columns. All other statements see STRING for CHAR and VARCHAR: see
     * TableDefinition.Field.
     */
    private LogicalPlan declared(LogicalPlan plan, boolean isAltered) {
        Seq<String> name = plan.children().head() instanceof UnresolvedTable one ? one.multipartIdentifier()
            : plan.children().head() instanceof UnresolvedTableOrView one ? one.multipartIdentifier() : null;
        CatalogNames.Found table = name == null ? null : names.foundBehindViews(name);
        if (table == null) return plan;
        List<LogicalPlan> children = new ArrayList<>(CollectionConverters.asJava(plan.children()));
        children.set(0, ResolvedTable.create(table.catalog(), table.ident(), table.table().declared(isAltered)));
        return plan.withNewChildren(CollectionConverters.asScala(children).toSeq());
    }

    /** Returns the tables and temporary views whose names match the pattern. */
    LogicalPlan extended(ShowTablesExtended show) {
        CatalogNames.DatabaseName db = show.namespace() instanceof UnresolvedNamespace name ? names.database(name.multipartIdentifier())
            : show.namespace() instanceof CurrentNamespace$ ? names.currentDatabase() : null;
        if (db == null || !db.catalog().isSessions()) return show;
        SessionCatalog session = names.spark().sessionState().catalog();
        List<Row> rows = new ArrayList<>();
        for (TableIdentifier table : CollectionConverters.asJava(session.listTables(db.parts().head(), show.pattern()))) {
            rows.add(RowFactory.create(table.database().getOrElse(() -> ""), table.table(), session.isTempView(table),
                information(session, db.catalog(), table) + "\n"));
        }
        return rows(show, rows);
    }

    private static LogicalPlan rows(LogicalPlan show, List<Row> rows) {
        return LocalRelation$.MODULE$.fromExternalRows(show.output(), CollectionConverters.asScala(rows).toSeq());
    }

    private static String information(SessionCatalog session, AcidCatalogBase catalog, TableIdentifier table) {
        if (!session.isTempView(table)) {
            AcidTable ours = catalog.acidTable(
                Identifier.of(new String[] {table.database().get()}, table.table()), null);
            if (ours != null) return information(catalog.name(), table, ours);
        }
        return session.getTempViewOrPermanentTableMetadata(table).simpleString();
    }

    /** Returns the description of a table, in the words and the order of Spark's own. */
    private static String information(String catalog, TableIdentifier ident, AcidTable table) {
        Map<String, String> properties = new TreeMap<>(table.properties());
        StringBuilder text = new StringBuilder();
        add(text, "Catalog", catalog);
        add(text, "Database", ident.database().get());
        add(text, "Table", ident.table());
        add(text, "Owner", properties.remove(TableCatalog.PROP_OWNER));
        add(text, "Type", properties.remove(TableCatalog.PROP_EXTERNAL) == null ? "MANAGED" : "EXTERNAL");
        add(text, "Provider", properties.remove(TableCatalog.PROP_PROVIDER));
        add(text, "Comment", properties.remove(TableCatalog.PROP_COMMENT));
        String location = properties.remove(TableCatalog.PROP_LOCATION);
        List<String> pairs = new ArrayList<>();
        properties.forEach((name, value) -> pairs.add(name + "=" + value));
        add(text, "Table Properties", "[" + String.join(", ", pairs) + "]");
        add(text, "Location", location);
        String[] keys = table.partitionSchema().fieldNames();
        if (keys.length > 0) {
            add(text, "Partition Provider", "Catalog");
            List<String> quoted = new ArrayList<>();
            for (String key : keys) quoted.add("`" + key.replace("`", "``") + "`");
            add(text, "Partition Columns", "[" + String.join(", ", quoted) + "]");
        }
        add(text, "Schema", table.type().treeString());
        return text.toString();
    }

    private static void add(StringBuilder text, String name, String value) {
        if (value != null) text.append(name).append(": ").append(value).append('\n');
    }
}
