package transactionmetastore.spark.catalog;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.catalyst.analysis.NoSuchFunctionException;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.DelegatingCatalogExtension;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableWritePrivilege;
import org.apache.spark.sql.connector.catalog.functions.UnboundFunction;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import transactionmetastore.spark.planner.PlannerClient;
import transactionmetastore.spark.txn.AcidTransaction;
import transactionmetastore.spark.write.WriterFunction;

/**
 * Spark's session catalog, with the transactional tables of its metastore.
 *
 * Rule: the planner says what a name is. Spark's own catalog is never asked for a transactional table, which to it would be
 * an empty one; and for anything else it is what answers. Nothing is remembered from one statement to the next.
 * What differs between versions of Spark is in AcidCatalog.
 */
public abstract class AcidCatalogBase extends DelegatingCatalogExtension {
    private String name = "spark_catalog";
    private String address = "";
    private AcidTransaction transaction;

    @Override
    public final void initialize(String given, CaseInsensitiveStringMap options) {
        name = given;
        address = options.getOrDefault("planner", "");
    }

    @Override
    public final String name() {
        return name;
    }

    /** A catalog of the same tables, for one transaction. */
    final <C extends AcidCatalogBase> C inside(C other, AcidTransaction of) {
        AcidCatalogBase base = other;
        base.name = name;
        base.address = address;
        base.transaction = of;
        base.setDelegateCatalog(delegate);
        return other;
    }

    final PlannerClient planner() {
        return PlannerClient.of(address, SparkSession.active().sessionState().newHadoopConf());
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

    /** Spark looks there for the functions by which writes are distributed. */
    @Override
    public UnboundFunction loadFunction(Identifier ident) throws NoSuchFunctionException {
        UnboundFunction writer = WriterFunction.named(ident.name());
        return writer == null ? super.loadFunction(ident) : writer;
    }

    @Override
    public boolean tableExists(Identifier ident) {
        return acidTable(ident, null) != null || super.tableExists(ident);
    }

    /** The table where it is a transactional one, or null. */
    final AcidTable acidTable(Identifier ident, AsOf asOf) {
        if (ident.namespace().length != 1) return null;
        String db = ident.namespace()[0].toLowerCase(Locale.ROOT), table = ident.name().toLowerCase(Locale.ROOT);
        PlannerClient planner = planner();
        JsonNode answer = planner.call("table", Map.of("db", db, "table", table));
        return switch (answer.path("kind").asText()) {
            case "full_acid", "insert_only" -> {
                if (transaction != null) transaction.read(db + "." + table);
                yield new AcidTable(name, planner, TableDefinition.of(db + "." + table, answer), asOf, transaction);
            }
            default -> null;
        };
    }
}
