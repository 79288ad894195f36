package transactionmetastore.spark.catalog;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.analysis.NamespaceAlreadyExistsException;
import org.apache.spark.sql.catalyst.analysis.NoSuchFunctionException;
import org.apache.spark.sql.catalyst.analysis.NoSuchNamespaceException;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.connector.catalog.FunctionCatalog;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.NamespaceChange;
import org.apache.spark.sql.connector.catalog.SupportsNamespaces;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.connector.catalog.TableChange;
import org.apache.spark.sql.connector.catalog.functions.UnboundFunction;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import transactionmetastore.spark.planner.AcidException;
import transactionmetastore.spark.txn.AcidTransaction;

/**
 * The databases of a metastore whose catalog is not Spark's session catalog.
 *
 * Plain tables are read by the session catalog of a Spark that uses this metastore. Here each use of one ends in an error
 * that says so.
 */
final class OtherMetastore implements TableCatalog, SupportsNamespaces, FunctionCatalog {
    private final AcidCatalogBase catalog;

    OtherMetastore(AcidCatalogBase catalog) {
        this.catalog = catalog;
    }

    @Override
    public void initialize(String name, CaseInsensitiveStringMap options) {}

    @Override
    public String name() {
        return catalog.name();
    }

    @Override
    public String[] defaultNamespace() {
        return new String[] {"default"};
    }

    // -- tables: none ----------------------------------------------------------------------------------------------------

    /** Lists the transactional tables: other tables cannot be used here. */
    @Override
    public Identifier[] listTables(String[] namespace) throws NoSuchNamespaceException {
        List<Identifier> tables = new ArrayList<>();
        if (!namespaceExists(namespace)) throw new NoSuchNamespaceException(namespace);
        for (JsonNode name : catalog.planner().call("transactional_tables", Map.of("db", db(namespace))).path("tables")) {
            tables.add(Identifier.of(namespace, name.asText()));
        }
        return tables.toArray(new Identifier[0]);
    }

    @Override
    public Table loadTable(Identifier ident) throws NoSuchTableException {
        requireNothing(ident);
        throw new NoSuchTableException(ident);
    }

    @Override
    public Table loadTable(Identifier ident, String version) throws NoSuchTableException {
        return loadTable(ident);
    }

    @Override
    public Table loadTable(Identifier ident, long timestamp) throws NoSuchTableException {
        return loadTable(ident);
    }

    private void requireNothing(Identifier ident) {
        if (ident.namespace().length != 1) return;
        String kind = catalog.planner().call("table",
            Map.of("db", db(ident.namespace()), "table", AcidCatalogBase.lower(ident.name()))).path("kind").asText();
        if (!kind.equals("absent")) throw refused(name() + "." + ident + " is no transactional table");
    }

    @Override
    @SuppressWarnings("deprecation")
    public Table createTable(Identifier ident, Column[] columns, Transform[] partitions, Map<String, String> properties) {
        throw refused(name() + "." + ident + " is to be no transactional table (TBLPROPERTIES ('transactional'='true') makes it one)");
    }

    @Override
    public Table alterTable(Identifier ident, TableChange... changes) throws NoSuchTableException {
        return loadTable(ident);
    }

    @Override
    public boolean dropTable(Identifier ident) {
        requireNothing(ident);
        return false;
    }

    @Override
    public void renameTable(Identifier from, Identifier to) throws NoSuchTableException {
        loadTable(from);
    }

    private AcidException refused(String what) {
        return new AcidException("UNSUPPORTED", what + ", and the catalog " + name() + " has those alone: use Spark's session catalog (the name "
            + "without " + name() + ") where its metastore is the same one, or a Spark whose hive.metastore.uris names it.");
    }

    // -- databases -------------------------------------------------------------------------------------------------------

    @Override
    public String[][] listNamespaces() {
        List<String[]> names = new ArrayList<>();
        for (JsonNode name : catalog.planner().call("databases", Map.of()).path("databases")) names.add(new String[] {name.asText()});
        return names.toArray(new String[0][]);
    }

    @Override
    public String[][] listNamespaces(String[] namespace) throws NoSuchNamespaceException {
        if (namespace.length == 0) return listNamespaces();
        if (!namespaceExists(namespace)) throw new NoSuchNamespaceException(namespace);
        return new String[0][];
    }

    @Override
    public Map<String, String> loadNamespaceMetadata(String[] namespace) throws NoSuchNamespaceException {
        if (namespace.length != 1) throw new NoSuchNamespaceException(namespace);
        JsonNode database;
        try {
            database = catalog.planner().call("database", Map.of("db", db(namespace)));
        } catch (AcidException error) {
            if (error.is("NoSuchObjectError")) throw new NoSuchNamespaceException(namespace);
            throw error;
        }
        Map<String, String> shown = new HashMap<>();
        database.path("properties").properties().forEach(each -> shown.put(each.getKey(), each.getValue().asText()));
        for (String name : List.of(SupportsNamespaces.PROP_LOCATION, SupportsNamespaces.PROP_COMMENT, SupportsNamespaces.PROP_OWNER)) {
            shown.put(name, database.path(name).asText());
        }
        return shown;
    }

    @Override
    public void createNamespace(String[] namespace, Map<String, String> properties) throws NamespaceAlreadyExistsException {
        Map<String, Object> arguments = new HashMap<>(AcidTransaction.caller());
        Map<String, String> others = new HashMap<>(properties);
        arguments.put("db", db(namespace));
        arguments.put("location", others.remove(SupportsNamespaces.PROP_LOCATION));
        arguments.put("comment", others.remove(SupportsNamespaces.PROP_COMMENT));
        others.remove(SupportsNamespaces.PROP_OWNER);
        arguments.put("properties", others);
        try {
            catalog.planner().call("create_database", arguments);
        } catch (AcidException error) {
            if (error.is("AlreadyExistsError")) throw new NamespaceAlreadyExistsException(namespace);
            throw error;
        }
    }

    @Override
    public void alterNamespace(String[] namespace, NamespaceChange... changes) {
        throw new AcidException("UNSUPPORTED", "Databases are altered by Spark's session catalog, of a Spark whose metastore is that of "
            + name() + ".");
    }

    /** Drops a database whose transactional tables have been dropped already. */
    @Override
    public boolean dropNamespace(String[] namespace, boolean cascade) throws NoSuchNamespaceException {
        if (!namespaceExists(namespace)) throw new NoSuchNamespaceException(namespace);
        catalog.planner().call("drop_database", Map.of("db", db(namespace), "cascade", cascade));
        return true;
    }

    private static String db(String[] namespace) {
        return AcidCatalogBase.lower(String.join(".", namespace));
    }

    // -- functions: none -------------------------------------------------------------------------------------------------

    @Override
    public Identifier[] listFunctions(String[] namespace) {
        return new Identifier[0];
    }

    @Override
    public UnboundFunction loadFunction(Identifier ident) throws NoSuchFunctionException {
        throw new NoSuchFunctionException(ident);
    }
}
