package transactionmetastore.spark.extension;

import java.util.List;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.CatalogManager;
import org.apache.spark.sql.connector.catalog.CatalogPlugin;
import org.apache.spark.sql.connector.catalog.Identifier;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;
import transactionmetastore.spark.catalog.AcidCatalogBase;
import transactionmetastore.spark.catalog.AcidTable;

/** Resolver of the names in a statement against our catalogs, before Spark resolves them. */
record CatalogNames(SparkSession spark) {
    /** The name of a table in one of our catalogs. The table may be missing. */
    record TableName(AcidCatalogBase catalog, Identifier ident) {}

    /** A transactional table that exists. */
    record Found(AcidCatalogBase catalog, Identifier ident, AcidTable table) {}

    /** The name of a database in one of our catalogs. The database may be missing. */
    record DatabaseName(AcidCatalogBase catalog, Seq<String> parts) {}

    /** Returns the table that a name stands for; null where it is in another catalog. */
    TableName named(Seq<String> parts) {
        CatalogManager catalogs = catalogs();
        boolean isInNamed = parts.length() > 2 || parts.length() == 2 && catalogs.isCatalogRegistered(parts.head());
        if (!(catalog(isInNamed, parts) instanceof AcidCatalogBase catalog)) return null;
        String[] namespace = parts.length() == 1 ? catalogs.currentNamespace()
            : isInNamed && parts.length() == 2 ? catalog.defaultNamespace() : new String[] {parts.apply(parts.length() - 2)};
        return new TableName(catalog, Identifier.of(namespace, parts.last()));
    }

    /** Returns the transactional table of a name; null where there is none. */
    Found found(Seq<String> parts) {
        TableName name = named(parts);
        AcidTable table = name == null ? null : name.catalog.acidTable(name.ident, null);
        return table == null ? null : new Found(name.catalog, name.ident, table);
    }

    /** Returns the transactional table of a name, or null. A temporary view of this name comes first. */
    Found foundBehindViews(Seq<String> parts) {
        return spark.sessionState().catalog().isTempView(parts) ? null : found(parts);
    }

    /** Returns the transactional table of a name in Spark's session catalog, or null. */
    AcidTable inSessionCatalog(TableIdentifier name) {
        CatalogManager catalogs = catalogs();
        if (!(catalogs.v2SessionCatalog() instanceof AcidCatalogBase catalog)) return null;
        if (name.database().isEmpty() && catalogs.v1SessionCatalog().isTempView(name)) return null;
        String db = name.database().getOrElse(() -> catalogs.v1SessionCatalog().getCurrentDatabase());
        return catalog.acidTable(Identifier.of(new String[] {db}, name.table()), null);
    }

    /** Returns the database that a name stands for; null where it is in another catalog. */
    @SuppressWarnings("unchecked")
    DatabaseName database(Seq<String> parts) {
        boolean isInNamed = parts.length() > 1 && catalogs().isCatalogRegistered(parts.head());
        if (!(catalog(isInNamed, parts) instanceof AcidCatalogBase catalog) || parts.length() != (isInNamed ? 2 : 1)) return null;
        return new DatabaseName(catalog, isInNamed ? (Seq<String>) parts.tail() : parts);
    }

    /** Returns the current database, in the form that database() has. */
    DatabaseName currentDatabase() {
        return database(CollectionConverters.asScala(List.of(catalogs().currentNamespace())).toSeq());
    }

    private CatalogPlugin catalog(boolean isInNamed, Seq<String> parts) {
        return isInNamed ? catalogs().catalog(parts.head()) : catalogs().currentCatalog();
    }

    private CatalogManager catalogs() {
        return spark.sessionState().catalogManager();
    }
}
