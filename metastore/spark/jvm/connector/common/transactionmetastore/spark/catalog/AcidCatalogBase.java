package transactionmetastore.spark.catalog;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.sql.catalyst.analysis.NoSuchFunctionException;
import org.apache.spark.sql.catalyst.analysis.NoSuchNamespaceException;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.catalyst.analysis.NonEmptyNamespaceException;
import org.apache.spark.sql.catalyst.analysis.TableAlreadyExistsException;
import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.connector.catalog.DelegatingCatalogExtension;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.ProcedureCatalog;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.connector.catalog.TableChange;
import org.apache.spark.sql.connector.catalog.TableWritePrivilege;
import org.apache.spark.sql.connector.catalog.functions.UnboundFunction;
import org.apache.spark.sql.connector.catalog.procedures.UnboundProcedure;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import transactionmetastore.spark.internals.ActiveSession;
import transactionmetastore.spark.planner.AcidException;
import transactionmetastore.spark.planner.PlannerClient;
import transactionmetastore.spark.procedure.BlockProcedure;
import transactionmetastore.spark.procedure.Procedures;
import transactionmetastore.spark.table.AsOf;
import transactionmetastore.spark.table.TableDefinition;
import transactionmetastore.spark.table.WriterFunction;
import transactionmetastore.spark.txn.AcidTransaction;
import transactionmetastore.spark.txn.Block;
import transactionmetastore.spark.txn.SessionBlock;

/**
 * Spark's session catalog, extended by the transactional tables of its metastore. Under another name it is a catalog of the
 * transactional tables of any metastore, and of nothing else.
 *
 * Rule: the planner decides whether a name is a transactional table. Spark's own catalog would show such a table as empty,
 * so it never loads one; it answers for everything else. Nothing is cached between statements. AcidCatalog has the
 * differences between versions of Spark.
 */
public abstract class AcidCatalogBase extends DelegatingCatalogExtension implements ProcedureCatalog {
    /** Properties that RoutingRule adds to a new table: the storage format, the SerDe and the properties of the SerDe. */
    public static final String FORMAT = "acid.format", SERDE = "acid.serde", SERDE_PROPERTY = "acid.serde.property.";
    /**
     * Properties with the constraints of a new table, as JSON (ConstrainedCatalog adds it), and the columns of SORTED BY
     * that descend (users set it).
     */
    static final String CONSTRAINTS = "acid.constraints", DESCENDING = "acid.descending";

    private static final String SESSION = "spark_catalog";

    private String name = SESSION;
    private String address = "";
    private String metastore = "";
    private AcidTransaction transaction;
    private SessionBlock block = new SessionBlock();  // Spark makes a catalog for each session

    @Override
    public final void initialize(String catalogName, CaseInsensitiveStringMap options) {
        name = catalogName;
        address = options.getOrDefault("planner", "");
        metastore = options.getOrDefault("uris", "");
        if (!isSessions()) {
            setDelegateCatalog(new OtherMetastore(this));
        } else if (!metastore.isEmpty()) {
            throw new AcidException("InvalidInputError", "spark.sql.catalog." + name + ".uris would be the metastore of transactional tables "
                + "alone: Spark's session catalog has that of hive.metastore.uris. Give the catalog another name, or unset it.");
        }
    }

    /** Returns true if this is the session catalog: Spark's own catalog with plain tables and views is behind it. */
    public final boolean isSessions() {
        return name.equals(SESSION);
    }

    @Override
    public final String name() {
        return name;
    }

    /** Returns a new catalog of this class, not initialized yet. */
    abstract AcidCatalogBase newCatalog();

    /** Returns a catalog of the same tables, for one transaction. */
    final AcidCatalogBase inside(AcidTransaction statement) {
        return sameTables(newCatalog(), statement);
    }

    /** Returns a catalog of the same tables, for a statement that replaces a table. */
    public final AcidCatalogBase replacing() {
        return sameTables(new ReplacingCatalog(), null);
    }

    private AcidCatalogBase sameTables(AcidCatalogBase other, AcidTransaction statement) {
        other.name = name;
        other.address = address;
        other.metastore = metastore;
        other.transaction = statement;
        other.block = block;
        other.setDelegateCatalog(delegate);
        return other;
    }

    /**
     * Returns a catalog of the same tables under another name. Spark runs the DDL of its session catalog itself, without
     * calling this catalog.
     */
    public final AcidCatalogBase underAnotherName() {
        AcidCatalogBase other = inside(null);
        if (isSessions()) other.name = "acid";
        return other;
    }

    /** Returns the block that the session has open; null outside a block. */
    public final Block block() {
        return block.open();
    }

    /** Runs statements of this thread in one transaction: see SessionBlock. */
    public final Set<String> together(Runnable statements) {
        return block.together(this::planner, statements);
    }

    public final PlannerClient planner() {
        Configuration settings = ActiveSession.hadoopSettings();
        if (!metastore.isEmpty()) {
            settings.set("hive.metastore.uris", metastore);
        } else if (isSessions() && !ActiveSession.hasHiveSupport()) {
            throw new AcidException("NO_HIVE_SUPPORT", "The databases of this Spark are in its memory, and not in the metastore: "
                + "set spark.sql.catalogImplementation=hive, or enableHiveSupport().");
        }
        return PlannerClient.of(address, settings);
    }

    @Override
    public Table loadTable(Identifier ident) throws NoSuchTableException {
        AcidTable table = acidTable(ident, null);
        return table == null ? super.loadTable(ident) : table;
    }

    @Override
    public Table loadTable(Identifier ident, Set<TableWritePrivilege> privileges) throws NoSuchTableException {
        return loadTable(ident);
    }

    @Override
    public Table loadTable(Identifier ident, String version) throws NoSuchTableException {
        AcidTable table = acidTable(ident, AsOf.version(ident.toString(), version));
        return table == null ? super.loadTable(ident, version) : table;
    }

    @Override
    public Table loadTable(Identifier ident, long timestamp) throws NoSuchTableException {
        AcidTable table = acidTable(ident, AsOf.timestamp(timestamp));
        return table == null ? super.loadTable(ident, timestamp) : table;
    }

    /** Returns a function by which Spark distributes writes: Spark looks such functions up in the catalog. */
    @Override
    public UnboundFunction loadFunction(Identifier ident) throws NoSuchFunctionException {
        UnboundFunction writer = WriterFunction.named(ident.name());
        return writer == null ? super.loadFunction(ident) : writer;
    }

    @Override
    public UnboundProcedure loadProcedure(Identifier ident) {
        UnboundProcedure ofBlock = BlockProcedure.named(ident, name, block, this::planner);
        return ofBlock == null ? Procedures.named(name, planner(), block, ident) : ofBlock;
    }

    /** Lists procedures. Spark 4.0 has no such method, so this is no override there. */
    public Identifier[] listProcedures(String[] namespace) {
        return Procedures.list(planner(), namespace, BlockProcedure.NAMES);
    }

    @Override
    public boolean tableExists(Identifier ident) {
        return acidTable(ident, null) != null || super.tableExists(ident);
    }

    @Override
    public Table createTable(Identifier ident, Column[] columns, Transform[] partitions, Map<String, String> properties)
            throws TableAlreadyExistsException, NoSuchNamespaceException {
        if (!AcidProvider.class.getName().equals(properties.get(TableCatalog.PROP_PROVIDER))) {
            return super.createTable(ident, columns, partitions, properties);
        }
        planner().call("create", Creation.of(ident, columns, partitions, properties));
        return acidTable(ident, null);
    }

    /** Returns the statement that creates a table of the same definition. */
    public final String createStatement(Identifier ident) {
        Map<String, String> name = Map.of("db", lower(ident.namespace()[0]), "table", lower(ident.name()));
        return planner().call("show_create", name).path("statement").asText();
    }

    /** Creates a table like "source". "properties": those of the statement; they are added to the source's. */
    final Table createLike(Identifier ident, AcidTable source, Map<String, String> properties) {
        planner().call("create_like", Creation.like(ident, source, properties));
        return acidTable(ident, null);
    }

    @Override
    public Table alterTable(Identifier ident, TableChange... changes) throws NoSuchTableException {
        AcidTable table = acidTable(ident, null);
        if (table == null) return super.alterTable(ident, changes);
        if (Arrays.stream(changes).anyMatch(Creation::isOfColumnRule)) return ruled(ident, changes);
        block.requireNone("The table " + table.fullName() + " is altered");
        planner().call("alter", named(ident, "changes", Creation.changes(table, changes)));
        return acidTable(ident, null);
    }

    /**
     * Sets or drops NOT NULL and DEFAULT of columns: each is a constraint, and replaces the column's constraints of the
     * same kind.
     */
    private Table ruled(Identifier ident, TableChange[] changes) {
        List<Map<String, Object>> added = new ArrayList<>(), dropped = new ArrayList<>();
        for (TableChange change : changes) {
            Map<String, Object> rule = Creation.columnRule(change);
            dropped.add(Map.of("kind", rule.get("kind"), "column", ((List<?>) rule.get("columns")).get(0)));
            if (rule.containsKey("is_enabled")) added.add(rule);
        }
        return constrained(ident, added, dropped);
    }

    /** Adds constraints to a transactional table, in the planner's form, and drops others. */
    final Table constrained(Identifier ident, List<Map<String, Object>> added, List<Map<String, Object>> dropped) {
        block.requireNone("The table " + ident + " gets other constraints");
        Map<String, Object> arguments = named(ident, "added", added);
        arguments.put("dropped", dropped);
        planner().call("constrain", arguments);
        return acidTable(ident, null);
    }

    /** Makes a plain table transactional. "properties": those that the statement sets, "transactional" among them. */
    public final void convert(Identifier ident, Map<String, String> properties) {
        block.requireNone("The table " + ident + " is made transactional");
        new Conversion(planner(), ActiveSession.hadoopSettings(), ident, properties).run();
        BlockProcedure.refresh(name, fullName(ident));
    }

    @Override
    public boolean dropTable(Identifier ident) {
        return acidTable(ident, null) == null ? super.dropTable(ident) : drop(ident, false);
    }

    @Override
    public boolean purgeTable(Identifier ident) {
        return acidTable(ident, null) == null ? super.purgeTable(ident) : drop(ident, true);
    }

    /**
     * Drops a database. Transactional tables are dropped first: Spark's own client would try to load each, and the
     * metastore refuses.
     */
    @Override
    public boolean dropNamespace(String[] namespace, boolean cascade)
            throws NoSuchNamespaceException, NonEmptyNamespaceException {
        if (cascade && namespaceExists(namespace)) {
            for (Identifier table : listTables(namespace)) if (acidTable(table, null) != null) drop(table, false);
        }
        return super.dropNamespace(namespace, cascade);
    }

    private boolean drop(Identifier ident, boolean purge) {
        block.requireNone("The table " + ident + " is dropped");
        if (transaction != null) transaction.close();  // a failed CREATE TABLE AS still holds locks
        planner().call("drop", named(ident, "purge", purge));
        return true;
    }

    @Override
    public void renameTable(Identifier from, Identifier to) throws NoSuchTableException, TableAlreadyExistsException {
        if (acidTable(from, null) == null) {
            super.renameTable(from, to);
            return;
        }
        block.requireNone("The table " + from + " is renamed");
        String db = to.namespace().length == 0 ? from.namespace()[0] : to.namespace()[0];
        Map<String, Object> arguments = named(from, "to_db", lower(db));
        arguments.put("to_table", lower(to.name()));
        planner().call("rename", arguments);
    }

    private static Map<String, Object> named(Identifier ident, String key, Object value) {
        Map<String, Object> arguments = new HashMap<>(AcidTransaction.caller());
        arguments.putAll(Map.of("db", lower(ident.namespace()[0]), "table", lower(ident.name()), key, value));
        return arguments;
    }

    /** Returns the table's name as the metastore has it. */
    public static String fullName(Identifier ident) {
        return lower(ident.namespace()[0]) + "." + lower(ident.name());
    }

    public static String lower(String name) {
        return name.toLowerCase(Locale.ROOT);
    }

    /** Returns the transactional table of this name, or null if there is none. */
    public final AcidTable acidTable(Identifier ident, AsOf asOf) {
        if (ident.namespace().length != 1) return null;
        String db = lower(ident.namespace()[0]), table = lower(ident.name());
        PlannerClient planner = planner();
        JsonNode answer = planner.call("table", Map.of("db", db, "table", table));
        return switch (answer.path("kind").asText()) {
            case "full_acid", "insert_only" -> {
                TableDefinition definition = TableDefinition.of(db, table, answer);
                if (transaction != null) transaction.read(definition.name());
                yield new AcidTable(name, planner, definition, asOf, block(), transaction);
            }
            default -> null;
        };
    }
}
