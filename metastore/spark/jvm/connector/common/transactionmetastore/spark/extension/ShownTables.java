package transactionmetastore.spark.extension;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.catalog.SessionCatalog;
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation$;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.ShowTablesExtended;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import scala.jdk.javaapi.CollectionConverters;
import transactionmetastore.spark.catalog.AcidCatalogBase;
import transactionmetastore.spark.catalog.AcidTable;

/**
 * What SHOW TABLE EXTENDED shows, as rows: Spark's own command loads each table as its session catalog has it, which gets no
 * transactional ones, and fails at the first.
 */
final class ShownTables {
    private final SessionCatalog session;
    private final AcidCatalogBase catalog;

    ShownTables(SessionCatalog session, AcidCatalogBase catalog) {
        this.session = session;
        this.catalog = catalog;
    }

    /** Of the database, and of the session's temporary views, what has a name of the pattern. */
    LogicalPlan extended(String db, ShowTablesExtended show) {
        List<Row> rows = new ArrayList<>();
        for (TableIdentifier table : CollectionConverters.asJava(session.listTables(db, show.pattern()))) {
            rows.add(RowFactory.create(
                table.database().getOrElse(() -> ""), table.table(), session.isTempView(table), information(table) + "\n"));
        }
        return LocalRelation$.MODULE$.fromExternalRows(show.output(), CollectionConverters.asScala(rows).toSeq());
    }

    private String information(TableIdentifier table) {
        if (!session.isTempView(table)) {
            AcidTable ours = catalog.acidTable(
                Identifier.of(new String[] {table.database().get()}, table.table()), null);
            if (ours != null) return information(table, ours);
        }
        return session.getTempViewOrPermanentTableMetadata(table).simpleString();
    }

    /** In the words and the order of Spark's own. */
    private String information(TableIdentifier ident, AcidTable table) {
        Map<String, String> properties = new TreeMap<>(table.properties());
        StringBuilder text = new StringBuilder();
        add(text, "Catalog", catalog.name());
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
